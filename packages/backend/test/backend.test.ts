import { CodedError } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import {
  type Backend,
  backendSchema,
  builtinBackends,
  contractVariables,
  findBackend,
  isRunnable,
  loadBackends,
  parseBackend,
} from '../src/index.ts';

const full: Backend = {
  name: 'some-agent',
  label: 'Some agent (your own key)',
  image: 'registry.example.com/some-agent:1',
  drivers: ['qemu', 'firecracker'],
  harness: { kind: 'command' },
  hosts: ['api.example.com', '.cdn.example.com', 'git.example.com:22/tcp'],
  modelRoute: { upstream: 'https://api.example.com', api: 'anthropic_messages', family: 'some' },
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
    ['upstream without TLS', { modelRoute: { ...full.modelRoute, upstream: 'http://api.example.com' } }],
    ['upstream with a path', { modelRoute: { ...full.modelRoute, upstream: 'https://api.example.com/v1' } }],
    ['upstream with a user', { modelRoute: { ...full.modelRoute, upstream: 'https://u:p@api.example.com' } }],
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
