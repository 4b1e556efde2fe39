import { generateKeyPairSync } from 'node:crypto';
import type { NodeVms } from '@firecrew/protocol';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until as lookUntil } from '../support/ask.ts';
import { FakeNode } from '../support/fake-node.ts';
import { startTestServer, type TestServer } from '../support/running-server.ts';

let databases: TestDatabaseServer;
let server: TestServer;
let nodes: FakeNode[];
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  nodes = [];
  server = await startTestServer({}, databases);
});
afterEach(async () => {
  for (const node of nodes) node.close();
  await server.stop();
});

interface NodeView {
  readonly id: string;
  readonly online: boolean;
  readonly vms?: NodeVms | null;
  readonly health: unknown;
  readonly capabilities: unknown;
  readonly verdict: {
    readonly fit: boolean;
    readonly freeSlots: number;
    readonly committed: number;
    readonly unfit?: { readonly reason: string };
  };
}

async function viewOf(nodeId: string): Promise<NodeView | undefined> {
  const { body } = await server.call('GET', '/v1/fleet');
  return (body as { nodes: NodeView[] }).nodes.find((node) => node.id === nodeId);
}

async function until(nodeId: string, holds: (now: NodeView) => boolean): Promise<NodeView> {
  const holdsFor = (now: NodeView | undefined): now is NodeView => now !== undefined && holds(now);
  return await lookUntil(() => viewOf(nodeId), holdsFor);
}

/** A node that is connected and seen to have room. */
async function connect(of: TestServer, slots: number): Promise<FakeNode> {
  const node = await FakeNode.connect(of, slots);
  nodes.push(node);
  await until(of.nodeId, ({ verdict }) => verdict.freeSlots === slots);
  return node;
}

/** The server as a second node of it, which has joined, speaks to it. */
async function joined(name: string): Promise<TestServer> {
  const { token } = (await server.call('POST', '/v1/join-tokens', { json: {} })).body as { token: string };
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const json = { token, name, publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64') };
  const { nodeId } = (await server.call('POST', '/v1/node/join', { json })).body as { nodeId: string };
  return { ...server, nodeId, nodeKey: privateKey };
}

async function create(phases: number, more: Record<string, unknown> = {}): Promise<string> {
  const phase = { kind: 'research', task: 'look', allowEmpty: true };
  const json = {
    title: 'Look',
    repository: { kind: 'none' },
    phases: Array.from({ length: phases }, () => phase),
    agent: { command: 'true' },
    allowUnisolated: true,
    ...more,
  };
  const reply = await server.call('POST', '/v1/missions', { json });
  if (reply.status !== 201) throw new Error(JSON.stringify(reply.body));
  return (reply.body as { id: string }).id;
}

describe('a mission that goes on', () => {
  it('goes back to the node of its last phase, though another has more room', async () => {
    const small = await connect(server, 1);
    await create(2);
    const first = await small.accept();
    const roomy = await connect(await joined('roomy'), 4);
    await small.finish(first, {});
    await small.finish(await small.accept(), {});
    expect(roomy.pending('turn.start')).toBe(0);
  });

  it('goes to another node when that one takes no more', async () => {
    const small = await connect(server, 1);
    await create(2);
    const first = await small.accept();
    const roomy = await connect(await joined('roomy'), 4);
    expect((await server.call('POST', `/v1/nodes/${server.nodeId}/drain`, { json: { draining: true } })).status).toBe(200);
    await small.finish(first, {});
    await roomy.finish(await roomy.accept(), {});
    expect(small.pending('turn.start')).toBe(0);
  });

  it('does not go back where its last attempt could not start', async () => {
    const small = await connect(server, 1);
    await create(1);
    const first = await small.accept();
    const roomy = await connect(await joined('roomy'), 4);
    await small.finish(first, {}, { outcome: { kind: 'failed_to_start', reason: 'boot_failed' } });
    const second = await roomy.accept();
    expect(second.spec.attempt).toBe(2);
    await roomy.finish(second, {});
    expect(small.pending('turn.start')).toBe(0);
  });
});

describe('the fleet', () => {
  it('says of a node that takes no turn why, with the numbers', async () => {
    expect((await viewOf(server.nodeId))?.verdict).toMatchObject({ fit: false, freeSlots: 0, unfit: { reason: 'not_capable' } });
    const node = await connect(server, 1);
    expect((await viewOf(server.nodeId))?.verdict.unfit).toBeUndefined();
    await create(1);
    const start = await node.accept();
    const full = await until(server.nodeId, ({ verdict }) => !verdict.fit);
    // 256 MiB of the host beside one claim of 1,024, and 512 stay free.
    expect(full.verdict.unfit).toEqual({ reason: 'at_capacity', committedMib: 1024, usedMib: 1280, totalMib: 1792 });
    await node.finish(start, {});
    node.send({ t: 'health', health: { memoryTotalMib: 1792, memoryUsedMib: 0, diskFreeMib: 3071, cpuPercent: 0, load1: 0 } });
    const narrow = await until(server.nodeId, ({ verdict }) => verdict.unfit?.reason === 'no_disk');
    expect(narrow.verdict.unfit).toEqual({ reason: 'no_disk', freeMib: 3071, promisedMib: 0 });
    node.send({ t: 'health', health: { memoryTotalMib: 1024, memoryUsedMib: 0, diskFreeMib: 9999, cpuPercent: 0, load1: 0 } });
    const tiny = await until(server.nodeId, ({ verdict }) => verdict.unfit?.reason === 'never_fits');
    expect(tiny.verdict.unfit).toEqual({ reason: 'never_fits', memoryMib: 1024, diskMib: 2048, totalMib: 1024 });
    node.close();
    await until(server.nodeId, ({ verdict }) => verdict.unfit?.reason === 'not_capable');
  });
});

describe('a node of two drivers', () => {
  it('is charged each attempt by its own driver, and keeps the reserve of a host of VMs', async () => {
    const node = await connect(server, 4);
    const both = ['process', 'qemu'].map((driver) => ({ driver, isolation: 'none', backends: ['command'], detail: 'fake' }));
    const health = { memoryTotalMib: 32_768, memoryUsedMib: 0, diskFreeMib: 1_000_000, cpuPercent: 0, load1: 0 };
    node.send({ t: 'health', health });
    node.send({ t: 'capabilities', capabilities: { drivers: both, kvm: false, cpus: 2, platform: 'fake', agentVersion: '1' } });
    // The default is a VM: 8,320 of the 32,768 MiB less 2,048 of the host and 4,096 of reserve.
    await until(server.nodeId, ({ verdict }) => verdict.freeSlots === 3);
    for (let count = 0; count < 3; count += 1) await create(1);
    for (let count = 0; count < 3; count += 1) expect((await node.accept()).spec.driver).toBe('qemu');
    const full = await until(server.nodeId, ({ verdict }) => verdict.committed === 3);
    expect(full.verdict.unfit).toEqual({ reason: 'at_capacity', committedMib: 3 * 8320, usedMib: 3 * 8320 + 2048, totalMib: 32_768 });
  });
});

describe('a mission that needs a model route', () => {
  const say = (node: FakeNode, isolation: string, modelRoutes: readonly unknown[] | undefined) => {
    const drivers = [{ driver: 'process', isolation, backends: ['command'], detail: 'fake' }];
    const view = { drivers, kvm: false, cpus: 2, platform: 'fake', agentVersion: '1' };
    node.send({ t: 'capabilities', capabilities: modelRoutes === undefined ? view : { ...view, modelRoutes } });
  };
  const route = { backend: 'command', format: 'anthropic_messages' };
  const waitingOf = async (id: string) =>
    ((await server.call('GET', `/v1/missions/${id}`)).body as { readonly waiting: string | null }).waiting;

  it('waits and says so where no node has one, keeps nobody else waiting, and starts once a node names it', async () => {
    const node = await connect(server, 4);
    const id = await create(1, { needsModelRoute: true });
    while ((await waitingOf(id))?.startsWith('no_node_with_model_route: ') !== true)
      await new Promise((resolve) => setTimeout(resolve, 25));
    await create(1);
    const other = await node.accept();
    expect(other.spec.missionId).not.toBe(id);
    say(node, 'bubblewrap', [route]);
    expect((await node.accept()).spec.missionId).toBe(id);
    expect(await waitingOf(id)).toBeNull();
  });

  it.each<readonly [string, string, readonly unknown[] | undefined]>([
    ['isolates nothing', 'none', [route]],
    ['names one for another backend', 'bubblewrap', [{ ...route, backend: 'other' }]],
    ['says nothing of routes', 'bubblewrap', undefined],
  ])('does not go to a node that %s, and goes to one that has a route', async (_what, isolation, routes) => {
    const roomy = await connect(server, 4);
    say(roomy, isolation, routes);
    await until(server.nodeId, ({ capabilities }) => JSON.stringify(capabilities).includes(`"isolation":"${isolation}"`));
    const routed = await connect(await joined('routed'), 1);
    say(routed, 'bubblewrap', [route]);
    const id = await create(1, { needsModelRoute: true });
    expect((await routed.accept()).spec.missionId).toBe(id);
    expect(roomy.pending('turn.start')).toBe(0);
  });

  it('is shown the routes of nodes, and nothing of where they lead', async () => {
    const node = await connect(server, 1);
    say(node, 'bubblewrap', [{ ...route, upstream: 'https://secret.test' }]);
    const seen = await until(server.nodeId, ({ capabilities }) => JSON.stringify(capabilities).includes('anthropic_messages'));
    expect(seen.capabilities).toMatchObject({ modelRoutes: [route] });
    expect(JSON.stringify(seen)).not.toContain('secret.test');
  });
});

describe('what a node says is on it', () => {
  const health = { memoryTotalMib: 512 + 256 + 2 * 1024, memoryUsedMib: 0, diskFreeMib: 1_000_000, cpuPercent: 0, load1: 0 };
  const vm = (key: { turnId: string; attempt: number }, name: string, memoryMib = 1024) => ({
    ...{ turnId: key.turnId, attempt: key.attempt, name, kind: 'agent' as const },
    demand: { driver: 'process' as const, memoryMib, diskMib: 2048 },
  });
  const say = (node: FakeNode, ...vms: ReturnType<typeof vm>[]) => node.send({ t: 'health', health, vms: { status: 'known', vms } });
  const ORPHAN = { turnId: 'trn_0000000000000001', attempt: 1 };
  const FILES = { 'a.txt': 'a\n' };

  it('counts where no attempt explains it, and what waits is placed once it is gone', async () => {
    const node = await connect(server, 2);
    say(node, vm(ORPHAN, '1a'), vm(ORPHAN, '1v'));
    const full = await until(server.nodeId, ({ verdict }) => verdict.freeSlots === 0);
    expect(full.verdict.unfit).toMatchObject({ reason: 'at_capacity', committedMib: 2048 });
    expect(full.vms).toMatchObject({
      status: 'known',
      vms: [
        { ...ORPHAN, name: '1a' },
        { ...ORPHAN, name: '1v' },
      ],
    });
    const id = await create(1);
    await lookUntil(
      async () => (await server.call('GET', `/v1/missions/${id}`)).body as { readonly waiting: string | null },
      ({ waiting }) => waiting?.startsWith('fleet_at_capacity: ') === true,
    );
    say(node, vm(ORPHAN, '1a'));
    expect((await node.accept()).spec.missionId).toBe(id);
  });

  it('lies in the slot of its attempt, one at a time, until the node has reported the end of that', async () => {
    const node = await connect(server, 2);
    await create(1);
    const first = await node.accept();
    say(node, vm(first.spec, '1v'));
    await until(server.nodeId, ({ vms, verdict }) => vms?.status === 'known' && vms.vms.length === 1 && verdict.freeSlots === 1);
    say(node, vm(first.spec, '1a'), vm(first.spec, '1v'));
    await until(server.nodeId, ({ verdict }) => verdict.freeSlots === 0);
    const next = await create(1);
    await node.finish(first, FILES);
    expect((await node.accept()).spec.missionId).toBe(next);
  });

  it('is nothing that could be placed on where it cannot say, and that is not called full', async () => {
    const node = await connect(server, 2);
    node.send({ t: 'health', health, vms: { status: 'unknown', error: 'EIO: the disk' } });
    const mute = await until(server.nodeId, ({ verdict }) => !verdict.fit);
    expect(mute.verdict.unfit).toEqual({ reason: 'capacity_unknown', error: 'EIO: the disk' });
    say(node);
    await until(server.nodeId, ({ verdict }) => verdict.freeSlots === 2);
  });

  it('is refused as a whole where a part of it cannot be, and what the node said before stays', async () => {
    const node = await connect(server, 2);
    say(node, vm(ORPHAN, '1a'));
    const before = await until(server.nodeId, ({ verdict }) => verdict.freeSlots === 1);
    const good = vm(ORPHAN, '1a');
    const hostile: readonly (readonly [string, readonly unknown[]])[] = [
      ['vms.vms.0.turnId', [{ ...good, turnId: 'x' }]],
      ['vms.vms.1.attempt', [good, { ...good, attempt: -1 }]],
      ['vms.vms.0.name', [vm(ORPHAN, 'a'.repeat(33))]],
      ['vms.vms.0.kind', [{ ...good, kind: 'other' }]],
      ['vms.vms.0.demand.driver', [{ ...good, demand: { ...good.demand, driver: 'other' } }]],
      ['vms.vms.0.demand.memoryMib', [vm(ORPHAN, '1a', -1)]],
      ['vms.vms.0.demand.diskMib', [{ ...good, demand: { ...good.demand, diskMib: -1 } }]],
      ['vms.vms', Array.from({ length: 4097 }, () => good)],
    ];
    for (const [where, vms] of hostile) {
      node.send({ t: 'health', health, vms: { status: 'known', vms } });
      const { code, message } = await node.next('error');
      expect({ code, message }).toEqual({ code: 'invalid_message', message: expect.stringContaining(`${where}: `) });
    }
    const after = await viewOf(server.nodeId);
    expect(after).toMatchObject({ online: true, vms: before.vms, verdict: { freeSlots: 1 } });
  });
});
