import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NodePeer } from './support/node-peer.ts';
import { startTestServer, type TestServer } from './support/running-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

describe('the node link', () => {
  it('welcomes a node that signs the challenge with its key', async () => {
    const peer = new NodePeer(server);
    await peer.hello();
    expect(await peer.next('welcome')).toMatchObject({ epoch: 1, keep: [], drop: [] });
    peer.close();
  });

  it.each([
    ['another key', () => generateKeyPairSync('ed25519').privateKey, {}, 'node_refused'],
    ['another boot than it signed', () => server.nodeKey, { bootId: 'other' }, 'node_refused'],
    ['an id that is not known', () => server.nodeKey, { nodeId: 'nod_0000000000000000' }, 'node_refused'],
    ['a generation that is too new', () => server.nodeKey, { generation: 9, minGeneration: 9 }, 'generation_too_new'],
  ])('refuses a node with %s', async (_name, key, over, code) => {
    const peer = new NodePeer(server);
    await peer.hello(key(), over);
    expect(await peer.next('refused')).toMatchObject({ code });
    await once(peer.ws, 'close');
  });

  it('takes nothing before the hello', async () => {
    const peer = new NodePeer(server);
    await peer.next('challenge');
    peer.send({ t: 'health', health: { memoryTotalMib: 1, memoryUsedMib: 1, diskFreeMib: null, cpuPercent: null, load1: null } });
    expect(await peer.next('refused')).toMatchObject({ code: 'hello_expected' });
  });

  it('answers what it does not understand with a code, and goes on', async () => {
    const peer = new NodePeer(server);
    await peer.hello();
    await peer.next('welcome');
    peer.send({ t: 'turn.exploded' });
    expect(await peer.next('error')).toMatchObject({ code: 'unknown_message' });
    peer.ws.send('{');
    expect(await peer.next('error')).toMatchObject({ code: 'not_json' });
    peer.send({ t: 'lease.renew', id: 7, turns: [{ turnId: 'trn_0000000000000000', attempt: 1, epoch: 1 }] });
    expect(await peer.next('lease.ack')).toMatchObject({ id: 7, renewed: [], lost: [{ turnId: 'trn_0000000000000000' }] });
    peer.close();
  });

  it('tells a node to drop turns that are not its own', async () => {
    const peer = new NodePeer(server);
    await peer.hello(server.nodeKey, { turns: [{ turnId: 'trn_0000000000000000', attempt: 1, epoch: 1, state: 'running', acked: 0 }] });
    expect((await peer.next('welcome')).drop).toEqual([{ turnId: 'trn_0000000000000000', attempt: 1, epoch: 1 }]);
    peer.close();
  });

  it('tells a node that comes back of a cancellation meanwhile, without a wake-up', async () => {
    const isolation = { driver: 'process', isolation: 'none', backends: ['command'], detail: '' };
    const peer = new NodePeer(server);
    await peer.hello();
    await peer.next('welcome');
    peer.send({ t: 'capabilities', capabilities: { drivers: [isolation], kvm: false, cpus: 1, platform: 'test', agentVersion: '1' } });
    peer.send({ t: 'health', health: { memoryTotalMib: 8192, memoryUsedMib: 0, diskFreeMib: 100_000, cpuPercent: null, load1: null } });
    const json = { title: 'T', repository: { kind: 'none' }, phases: [{ kind: 'research', task: 'look' }], agent: { command: 'true' } };
    const created = await server.call('POST', '/v1/missions', { json });
    const { turnId, attempt, epoch } = (await peer.next('turn.start')).spec;
    peer.send({ t: 'turn.accepted', turnId, attempt, epoch });
    const closed = once(peer.ws, 'close');
    peer.close();
    await closed;
    const { id } = created.body as { id: string };
    await server.call('POST', `/v1/missions/${id}/cancel`, { json: {} });
    const back = new NodePeer(server);
    await back.hello(server.nodeKey, { turns: [{ turnId, attempt, epoch, state: 'running', acked: 0 }] });
    expect(await back.next('turn.cancel')).toMatchObject({ turnId, attempt, epoch, reason: 'cancelled' });
    back.close();
  });

  it('is not for browsers, and is nowhere else', async () => {
    const peer = new NodePeer(server, { origin: server.url });
    const [, reply] = (await once(peer.ws, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(reply.statusCode).toBe(404);
  });

  it('has one connection for each node: a new one takes the place of the old', async () => {
    const first = new NodePeer(server);
    await first.hello();
    await first.next('welcome');
    const closed = once(first.ws, 'close');
    const second = new NodePeer(server);
    await second.hello();
    await second.next('welcome');
    expect(((await closed) as [number])[0]).toBe(4000);
    second.close();
  });
});
