import type { BackendView, NodeCapabilities } from '@firecrew/protocol';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { postTo, until } from '../support/ask.ts';
import { FakeNode } from '../support/fake-node.ts';
import { startTestServer, type TestServer } from '../support/running-server.ts';

const MANIFEST = {
  name: 'some-agent',
  label: 'Some agent (the operator pays)',
  image: 'some-image',
  drivers: ['qemu'],
  harness: { kind: 'command' },
  hosts: ['api.example.com'],
  modelRoute: { format: 'anthropic_messages' },
  credentialContract: null,
  scaffolding: ['.some/settings.json'],
  demand: { memoryMib: 512, diskMib: 1024 },
};
const ROUTE = { backend: 'some-agent', format: 'anthropic_messages' };

let databases: TestDatabaseServer;
let server: TestServer;
let node: FakeNode;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  server = await startTestServer({ backends: [MANIFEST] }, databases);
  node = await FakeNode.connect(server);
});
afterEach(async () => {
  node.close();
  await server.stop();
});

const codeOf = (body: unknown) => (body as { error?: { code?: string } }).error?.code;
const missionOf = (backend: string, over: object = {}) => ({
  title: 'T',
  repository: { kind: 'none' },
  phases: [{ kind: 'research', task: 'x' }],
  agent: { backend, command: 'true' },
  allowUnisolated: true,
  ...over,
});
const create = async (backend: string, over: object = {}) =>
  (await postTo<{ id: string }>(server, '/v1/missions', missionOf(backend, over))).id;
const view = async (id: string) => (await server.call('GET', `/v1/missions/${id}`)).body as MissionNow;
interface MissionNow {
  readonly state: string;
  readonly waiting: string | null;
  readonly end: { readonly detail: string } | null;
}

const LACKED = { backend: 'some-agent', detail: 'nothing named some-image' };

/** Says what the node can boot. */
function say(drivers: readonly object[], modelRoutes: readonly object[] = [ROUTE], unavailable: readonly object[] = []) {
  const said = drivers.map((driver) => ({ ...driver, detail: 'fake' }));
  // cast: a node may say anything; the server reads it
  const capabilities = {
    drivers: said,
    unavailable,
    modelRoutes,
    kvm: false,
    cpus: 2,
    platform: 'fake',
    agentVersion: '1',
  } as unknown as NodeCapabilities;
  node.send({ t: 'health', health: { memoryTotalMib: 65_536, memoryUsedMib: 0, diskFreeMib: 1_000_000, cpuPercent: 0, load1: 0 } });
  node.send({ t: 'capabilities', capabilities });
}
const booting = (...backends: string[]) => [
  { driver: 'qemu', isolation: 'vm', backends },
  { driver: 'process', isolation: 'none', backends: ['command'] },
];
const backends = async () => ((await server.call('GET', '/v1/backends')).body as { backends: BackendView[] }).backends;

describe("a backend of the operator's", () => {
  it('is told to nodes with its image, and with nothing that they need not know', async () => {
    node.close();
    node = new FakeNode(server);
    await node.hello();
    const { backends: told } = await node.next('welcome');
    expect(told).toEqual([
      { name: 'command', image: null, drivers: ['process', 'qemu', 'firecracker'], variables: [] },
      { name: 'some-agent', image: 'some-image', drivers: ['qemu'], variables: [] },
    ]);
  });

  it('goes to the driver of a node that has its image and its route, with its hosts and its demand, and to no other', async () => {
    const [qemu, ...others] = booting('command');
    say([{ ...qemu, lacking: [LACKED] }, ...others]);
    const id = await create('some-agent');
    const waits = await until(
      () => view(id),
      (now) => now.state === 'failed' || now.waiting !== null,
    );
    expect([waits.state, waits.end?.detail]).toEqual([
      'failed',
      expect.stringMatching(/must offer qemu or a stronger driver.*some-agent.*; local with qemu: nothing named some-image$/),
    ]);
    say(booting('command', 'some-agent'));
    await create('some-agent');
    const { spec } = await node.accept();
    expect(spec).toMatchObject({ backend: 'some-agent', driver: 'qemu', demand: { memoryMib: 512, diskMib: 1024 } });
    expect(spec.egress.allow).toEqual(['api.example.com']);
  });

  it.each<[string, readonly object[]]>([
    ['no route', []],
    ['a route of another backend', [{ ...ROUTE, backend: 'command' }]],
    ['a route in another format', [{ ...ROUTE, format: 'gemini' }]],
  ])('waits for a model route where a node has %s', async (_what, routes) => {
    say(booting('some-agent'), routes);
    const id = await create('some-agent');
    await until(
      () => view(id),
      (now) => now.waiting?.startsWith('no_node_with_model_route: ') === true,
    );
    expect(node.pending('turn.start')).toBe(0);
    say(booting('some-agent'));
    expect((await node.accept()).spec.missionId).toBe(id);
  });

  it.each<[string, readonly object[], readonly object[]]>([
    ['its image', [{ driver: 'qemu', isolation: 'vm', backends: ['command'], lacking: [{ ...LACKED, coming: true }] }], []],
    ['all that its driver boots from', [], [{ driver: 'qemu', detail: 'nothing named kernel', coming: true }]],
  ])('waits where a node is getting %s, and ends where that turns out not to come', async (_what, drivers, unavailable) => {
    const others = booting('command').slice(1);
    const waits = async () => {
      say([...drivers, ...others], [ROUTE], unavailable);
      const id = await create('some-agent');
      await until(
        () => view(id),
        (now) => now.waiting?.startsWith('image_on_its_way: ') === true,
      );
      return id;
    };
    const doomed = await waits();
    say([{ driver: 'qemu', isolation: 'vm', backends: ['command'], lacking: [LACKED] }, ...others]);
    const ended = await until(
      () => view(doomed),
      (now) => now.state === 'failed',
    );
    expect(ended.end?.detail).toContain('local with qemu: nothing named some-image');
    const waiting = await waits();
    say(booting('some-agent'));
    expect((await node.accept()).spec.missionId).toBe(waiting);
  });

  it('is refused before anything is stored where nobody has it', async () => {
    const refused = await server.call('POST', '/v1/missions', { json: missionOf('some-agnet') });
    expect([refused.status, codeOf(refused.body)]).toEqual([400, 'backend_unknown']);
    const asked = await server.call('POST', '/v1/policy/ask', { json: { backend: 'some-agnet', egress: { allow: [] } } });
    expect([asked.status, codeOf(asked.body)]).toEqual([400, 'backend_unknown']);
    expect(await server.query('select id from missions')).toEqual([]);
  });

  it('is shown with where it can run now, and why it cannot', async () => {
    const own = async () => (await backends()).find(({ name }) => name === 'some-agent');
    expect(await own()).toMatchObject({ available: false, detail: 'no node that is online can boot it', nodes: [] });
    say(booting('some-agent'), []);
    await until(own, (now) => now?.detail.includes('no node that can boot it has a model route') === true);
    say(booting('some-agent'));
    const found = await until(own, (now) => now?.available === true);
    expect(found).toMatchObject({
      image: 'some-image',
      hosts: ['api.example.com'],
      detail: '',
      nodes: [{ id: server.nodeId, drivers: ['qemu'] }],
    });
  });
});

describe('a mission whose backend was taken out of the configuration', () => {
  it('ends and says so, and holds nobody else back', async () => {
    say(booting('command'), []);
    const gone = await create('some-agent');
    await until(
      () => view(gone),
      (now) => now.state !== 'running' || now.waiting !== null,
    );
    node.close();
    const orphan = await create('command');
    await server.query(`update missions set spec = jsonb_set(spec, '{agent,backend}', '"gone"') where id = '${orphan}'`);
    const next = await create('command');
    node = await FakeNode.connect(server);
    expect((await node.accept()).spec.missionId).toBe(next);
    const ended = await until(
      () => view(orphan),
      (now) => now.state === 'failed',
    );
    expect(ended.end?.detail).toBe('the backend gone is no longer among those of this server');
  });
});
