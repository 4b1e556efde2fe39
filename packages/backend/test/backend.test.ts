import { CodedError } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import {
  type Backend,
  type BackendNode,
  backendAvailability,
  backendSchema,
  backendsSchema,
  builtinBackends,
  contractVariables,
  findBackend,
  isRunnable,
  loadBackends,
  MAX_BACKENDS,
  nodeBackendOf,
  parseBackend,
} from '../src/index.ts';

const full: Backend = {
  name: 'some-agent',
  label: 'Some agent (your own key)',
  image: 'some-agent',
  drivers: ['qemu', 'firecracker'],
  harness: { kind: 'command' },
  hosts: ['api.example.com', '.cdn.example.com', 'git.example.com:22/tcp'],
  modelRoute: { format: 'anthropic_messages' },
  credentialContract: { variables: [{ name: 'SOME_API_KEY', required: true, purpose: 'Model calls.' }] },
  scaffolding: ['.some/settings.json'],
  demand: { memoryMib: 4096, vcpus: 2 },
};

const errorOf = (run: () => unknown): CodedError => {
  try {
    run();
  } catch (error) {
    if (error instanceof CodedError) return error;
  }
  throw new Error('no coded error was thrown');
};

describe('a manifest', () => {
  it('comes back as it was given', () => {
    expect(parseBackend(JSON.parse(JSON.stringify(full)))).toEqual(full);
  });

  it.each<[string, object]>([
    ['unknown key', { extra: 1 }],
    ['unknown key inside', { demand: { memoryMb: 1 } }],
    ['name with capitals', { name: 'Some' }],
    ['empty name', { name: '' }],
    ['empty label', { label: '' }],
    ['no driver', { drivers: [] }],
    ['unknown driver', { drivers: ['docker'] }],
    ['unknown harness', { harness: { kind: 'magic' } }],
    ['host with a scheme', { hosts: ['https://api.example.com'] }],
    ['host with a wildcard', { hosts: ['*.example.com'] }],
    ['host that is a whole domain', { hosts: ['.com'] }],
    ['host that is an address', { hosts: ['10.0.0.1'] }],
    ['image of a registry', { image: 'registry.example.com/some-agent:1' }],
    ['image that is a path', { image: '../some-agent' }],
    ['image under a driver that has none', { drivers: ['process', 'qemu'] }],
    ['format that is not known', { modelRoute: { format: 'telepathy' } }],
    ['upstream, which is the word of a node', { modelRoute: { format: 'openai_chat', upstream: 'https://api.example.com' } }],
    ['variable with a bad name', { credentialContract: { variables: [{ name: 'A=B', required: true, purpose: 'x' }] } }],
    ['scaffolding outside the tree', { scaffolding: ['../x'] }],
    ['absolute scaffolding', { scaffolding: ['/etc/x'] }],
    ['memory of 0', { demand: { memoryMib: 0 } }],
    ['memory that is no number', { demand: { memoryMib: '4096' } }],
  ])('with %s is refused', (_, over) => {
    expect(errorOf(() => parseBackend({ ...full, ...over })).code).toBe('backend_invalid');
  });

  it.each(Object.keys(full))('without %s is refused, and the message names it', (key) => {
    const document = Object.fromEntries(Object.entries(full).filter(([name]) => name !== key));
    expect(errorOf(() => parseBackend(document)).message).toContain(key);
  });

  it.each([null, [], 'command', 7])('is no %j', (document) => {
    expect(errorOf(() => parseBackend(document)).code).toBe('backend_invalid');
  });
});

describe('the builtin backends', () => {
  it.each(builtinBackends.map((backend) => backend.name))('%s is a valid, runnable manifest', (name) => {
    const backend = findBackend(name);
    expect(backendSchema.parse(backend)).toEqual(backend);
    expect(isRunnable(backend)).toBe(true);
  });

  it('have a generic command without hosts, image and credentials, for every driver', () => {
    expect(findBackend('command')).toMatchObject({ hosts: [], image: null, modelRoute: null, drivers: ['process', 'qemu', 'firecracker'] });
    expect(contractVariables(findBackend('command'))).toEqual([]);
  });
});

describe('looking a backend up', () => {
  it('names what there is when the name is unknown', () => {
    const error = errorOf(() => findBackend('claud', loadBackends([full])));
    expect(error).toMatchObject({ code: 'backend_unknown', id: 'claud', action: 'Use one of: command, some-agent.' });
    expect(errorOf(() => findBackend('x', [])).action).toContain('none is configured');
  });

  it('finds a loaded one beside the builtin ones, and refuses a name twice', () => {
    expect(findBackend('some-agent', loadBackends([full]))).toEqual(full);
    expect(contractVariables(full)).toEqual(['SOME_API_KEY']);
    expect(errorOf(() => loadBackends([full, full])).code).toBe('backend_duplicate');
    expect(errorOf(() => loadBackends([{ ...full, name: 'command' }])).code).toBe('backend_duplicate');
  });

  it('tells one that merely boots from one that can work', () => {
    expect(isRunnable({ ...full, credentialContract: null, modelRoute: null })).toBe(false);
    expect(isRunnable({ ...full, credentialContract: null })).toBe(true);
  });
});

describe('the manifests of an operator', () => {
  const own = { ...full, credentialContract: null };
  const problemsOf = (...backends: unknown[]) =>
    backendsSchema.safeParse(backends).error?.issues.map(({ path, message }) => [path.join('.'), message]);

  it('are refused where one is called as another, or has variables that nothing fills', () => {
    expect(problemsOf(own, { ...own, name: 'other' })).toBeUndefined();
    expect(problemsOf(own, own)).toEqual([['1.name', 'two backends are called some-agent']]);
    expect(problemsOf({ ...own, name: 'command' })).toEqual([['0.name', 'two backends are called command']]);
    expect(problemsOf(full)).toEqual([['0.credentialContract.variables', expect.stringContaining('name a modelRoute')]]);
    expect(problemsOf(...Array.from({ length: MAX_BACKENDS + 1 }, (_, at) => ({ ...own, name: `b${at}` })))).toBeDefined();
  });

  it('reach a node without what it need not know', () => {
    expect(nodeBackendOf(full)).toEqual({
      name: 'some-agent',
      image: 'some-agent',
      drivers: ['qemu', 'firecracker'],
      variables: ['SOME_API_KEY'],
    });
  });
});

describe('where a backend can run now', () => {
  const routed = { ...full, credentialContract: null };
  const node = (over: Partial<BackendNode> = {}, routes: { backend: string; format: string }[] = []): BackendNode => ({
    id: 'nod_1',
    name: 'one',
    online: true,
    capabilities: {
      drivers: [
        { driver: 'qemu', isolation: 'vm', backends: ['some-agent', 'command'], detail: '' },
        { driver: 'process', isolation: 'none', backends: ['command'], detail: '' },
      ],
      modelRoutes: routes,
    },
    ...over,
  });
  const route = { backend: 'some-agent', format: 'anthropic_messages' };
  const lacking = [
    { backend: 'some-agent', detail: 'nothing named some-agent' },
    { backend: 'other', detail: 'nothing named other' },
  ];
  const lackingNode = node({
    name: 'two',
    capabilities: { drivers: [{ driver: 'qemu', isolation: 'vm', backends: ['command'], detail: '', lacking }], modelRoutes: [route] },
  });

  it.each<[string, Backend, BackendNode[], string[], string]>([
    ['nothing is there', routed, [], [], 'no node that is online can boot it'],
    ['a node is offline', routed, [node({ online: false }, [route])], [], 'no node that is online can boot it'],
    ['a node has said nothing', routed, [node({ capabilities: null })], [], 'no node that is online can boot it'],
    ['its image is not there', routed, [lackingNode], [], 'no node that is online can boot it; two with qemu: nothing named some-agent'],
    ['it has no route', routed, [node()], [], 'no node that can boot it has a model route for it in the format anthropic_messages'],
    [
      'a route has another format',
      routed,
      [node({}, [{ ...route, format: 'gemini' }])],
      [],
      'no node that can boot it has a model route for it in the format anthropic_messages',
    ],
    [
      'a route is of another',
      routed,
      [node({}, [{ ...route, backend: 'command' }])],
      [],
      'no node that can boot it has a model route for it in the format anthropic_messages',
    ],
    ['image and route are there', routed, [node({}, [route]), node({ name: 'two' })], ['one: qemu'], ''],
    ['it needs nothing', { ...full, modelRoute: null }, [node()], ['one: qemu'], ''],
    [
      'it could never work',
      { ...full, modelRoute: null, credentialContract: null },
      [node()],
      [],
      'its manifest has neither a credential contract nor a model route',
    ],
    ['nothing isolates it', findBackend('command'), [node()], ['one: qemu process'], ''],
  ])('where %s', (_what, backend, nodes, places, detail) => {
    const found = backendAvailability(backend, nodes);
    expect(found.nodes.map(({ name, drivers }) => `${name}: ${drivers.join(' ')}`)).toEqual(places);
    expect(found).toMatchObject({ available: places.length > 0, detail });
  });

  it('is no driver that nothing isolates, where it needs a route', () => {
    const bare = node({}, [{ backend: 'command', format: 'gemini' }]);
    const { nodes } = backendAvailability({ ...findBackend('command'), modelRoute: { format: 'gemini' } }, [bare]);
    expect(nodes).toEqual([{ id: 'nod_1', name: 'one', drivers: ['qemu'] }]);
  });
});
