import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { GENERATION, nodeHelloText, type ServerMessage } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { startTestServer, type TestServer } from './support/running-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

/** A node's end of the link, with the messages that came. */
class Peer {
  readonly ws: WebSocket;
  readonly #got: ServerMessage[] = [];
  #wake: () => void = () => undefined;

  constructor(headers: Record<string, string> = {}) {
    this.ws = new WebSocket(server.url.replace('http', 'ws').concat('/v1/node/link'), { headers });
    this.ws.on('message', (data) => {
      this.#got.push(JSON.parse(String(data)) as ServerMessage);
      this.#wake();
    });
    this.ws.on('error', () => undefined);
  }

  async next<T extends ServerMessage['t']>(t: T): Promise<Extract<ServerMessage, { t: T }>> {
    for (;;) {
      const at = this.#got.findIndex((message) => message.t === t);
      const [found] = at < 0 ? [] : this.#got.splice(at, 1);
      if (found !== undefined) return found as Extract<ServerMessage, { t: T }>;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  send(message: unknown): void {
    this.ws.send(JSON.stringify(message));
  }

  async hello(key: KeyObject, over: Record<string, unknown> = {}): Promise<void> {
    const { nonce } = await this.next('challenge');
    const signature = sign(null, Buffer.from(nodeHelloText(nonce, server.nodeId, 'boot')), key).toString('base64');
    this.send({
      t: 'hello',
      generation: GENERATION,
      minGeneration: GENERATION,
      nodeId: server.nodeId,
      signature,
      bootId: 'boot',
      version: '1',
      turns: [],
      ...over,
    });
  }
}

describe('the node link', () => {
  it('welcomes a node that signs the challenge with its key', async () => {
    const peer = new Peer();
    await peer.hello(server.nodeKey);
    expect(await peer.next('welcome')).toMatchObject({ epoch: 1, keep: [], drop: [] });
    peer.ws.terminate();
  });

  it.each([
    ['another key', () => generateKeyPairSync('ed25519').privateKey, {}, 'node_refused'],
    ['another boot than it signed', () => server.nodeKey, { bootId: 'other' }, 'node_refused'],
    ['an id that is not known', () => server.nodeKey, { nodeId: 'nod_0000000000000000' }, 'node_refused'],
    ['a generation that is too new', () => server.nodeKey, { generation: 9, minGeneration: 9 }, 'generation_too_new'],
  ])('refuses a node with %s', async (_name, key, over, code) => {
    const peer = new Peer();
    await peer.hello(key(), over);
    expect(await peer.next('refused')).toMatchObject({ code });
    await once(peer.ws, 'close');
  });

  it('takes nothing before the hello', async () => {
    const peer = new Peer();
    await peer.next('challenge');
    peer.send({ t: 'health', health: { memoryTotalMib: 1, memoryUsedMib: 1, diskFreeMib: null, cpuPercent: null, load1: null } });
    expect(await peer.next('refused')).toMatchObject({ code: 'hello_expected' });
  });

  it('answers what it does not understand with a code, and goes on', async () => {
    const peer = new Peer();
    await peer.hello(server.nodeKey);
    await peer.next('welcome');
    peer.send({ t: 'turn.exploded' });
    expect(await peer.next('error')).toMatchObject({ code: 'unknown_message' });
    peer.ws.send('{');
    expect(await peer.next('error')).toMatchObject({ code: 'not_json' });
    peer.send({ t: 'lease.renew', id: 7, turns: [{ turnId: 'trn_0000000000000000', attempt: 1, epoch: 1 }] });
    expect(await peer.next('lease.ack')).toMatchObject({ id: 7, renewed: [], lost: [{ turnId: 'trn_0000000000000000' }] });
    peer.ws.terminate();
  });

  it('tells a node to drop turns that are not its own', async () => {
    const peer = new Peer();
    await peer.hello(server.nodeKey, { turns: [{ turnId: 'trn_0000000000000000', attempt: 1, epoch: 1, state: 'running', acked: 0 }] });
    expect((await peer.next('welcome')).drop).toEqual([{ turnId: 'trn_0000000000000000', attempt: 1, epoch: 1 }]);
    peer.ws.terminate();
  });

  it('tells a node that comes back of a cancellation meanwhile, without a wake-up', { timeout: 10_000 }, async () => {
    const isolation = { driver: 'process', isolation: 'none', backends: ['command'], detail: '' };
    const peer = new Peer();
    await peer.hello(server.nodeKey);
    await peer.next('welcome');
    peer.send({ t: 'capabilities', capabilities: { drivers: [isolation], kvm: false, cpus: 1, platform: 'test', agentVersion: '1' } });
    peer.send({ t: 'health', health: { memoryTotalMib: 8192, memoryUsedMib: 0, diskFreeMib: 100_000, cpuPercent: null, load1: null } });
    const json = { title: 'T', repository: { kind: 'none' }, phases: [{ kind: 'research', task: 'look' }], agent: { command: 'true' } };
    const created = await server.call('POST', '/v1/missions', { json });
    const { turnId, attempt, epoch } = (await peer.next('turn.start')).spec;
    peer.send({ t: 'turn.accepted', turnId, attempt, epoch });
    const closed = once(peer.ws, 'close');
    peer.ws.terminate();
    await closed;
    const { id } = created.body as { id: string };
    await server.call('POST', `/v1/missions/${id}/cancel`, { json: {} });
    const back = new Peer();
    await back.hello(server.nodeKey, { turns: [{ turnId, attempt, epoch, state: 'running', acked: 0 }] });
    expect(await back.next('turn.cancel')).toMatchObject({ turnId, attempt, epoch, reason: 'cancelled' });
    back.ws.terminate();
  });

  it('is not for browsers, and is nowhere else', async () => {
    const peer = new Peer({ origin: server.url });
    const [, reply] = (await once(peer.ws, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(reply.statusCode).toBe(404);
  });

  it('has one connection for each node: a new one takes the place of the old', async () => {
    const first = new Peer();
    await first.hello(server.nodeKey);
    await first.next('welcome');
    const closed = once(first.ws, 'close');
    const second = new Peer();
    await second.hello(server.nodeKey);
    await second.next('welcome');
    expect(((await closed) as [number])[0]).toBe(4000);
    second.ws.terminate();
  });
});
