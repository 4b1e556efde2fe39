import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  mergeSettings,
  parseListen,
  SETTING_VARIABLES,
  settingsOfEnvironment,
  settingsOfFlags,
  settingsSchema,
} from '../src/settings/settings.ts';

const merge = (file: unknown, env: Record<string, string>, flags: Record<string, unknown> = {}) =>
  mergeSettings([
    { name: 'file', value: file },
    { name: 'env', value: settingsOfEnvironment(env) },
    { name: 'flags', value: settingsOfFlags(flags, '/here') },
  ]);

describe('settings', () => {
  it('come from the file, are overridden by the environment, then by flags', () => {
    const file = { driverFloor: 'process', idleStopMs: 5, listen: { host: 'a', port: 1 } };
    expect(merge(file, {})).toEqual(file);
    expect(merge(file, { FIRECREW_DRIVER_FLOOR: 'qemu', FIRECREW_LISTEN: 'b:2' })).toEqual({
      ...file,
      driverFloor: 'qemu',
      listen: { host: 'b', port: 2 },
    });
    expect(merge(file, { FIRECREW_DRIVER_FLOOR: 'qemu', FIRECREW_LISTEN: 'b:2' }, { driverFloor: 'firecracker', listen: 'c:3' })).toEqual({
      ...file,
      driverFloor: 'firecracker',
      listen: { host: 'c', port: 3 },
    });
  });

  it('of a section are merged key by key, and lists are replaced', () => {
    expect(
      merge({ lease: { ttlMs: 1, renewEveryMs: 2 }, ceiling: ['a'] }, { FIRECREW_LEASE_TTL_MS: '9', FIRECREW_CEILING: 'b, c' }),
    ).toEqual({
      lease: { ttlMs: 9, renewEveryMs: 2 },
      ceiling: ['b', 'c'],
    });
  });

  it('of microVMs come from file and environment together', () => {
    const file = { firecracker: { jailer: null, cpus: 2, image: 'one' } };
    const env = { FIRECREW_FIRECRACKER_PROGRAM: '/opt/firecracker', FIRECREW_FIRECRACKER_IMAGE: 'two' };
    expect(merge(file, env)).toEqual({ firecracker: { jailer: null, cpus: 2, image: 'two', program: '/opt/firecracker' } });
    expect(merge({}, { FIRECREW_FIRECRACKER_IMAGE: 'two' })).toEqual({ firecracker: { image: 'two' } });
  });

  it('name the hosts under which a proxy asks', () => {
    expect(merge({ hostNames: ['a'] }, { FIRECREW_HOST_NAMES: 'b.example, c.example' }).hostNames).toEqual(['b.example', 'c.example']);
  });

  it('take a policy by its path, a relative one of a flag from where the caller stands', () => {
    expect(merge({ policyFile: '/a' }, { FIRECREW_POLICY_FILE: '/b' }).policyFile).toBe('/b');
    expect(merge({ policyFile: '/a' }, {}, { policy: 'c.yaml' }).policyFile).toBe('/here/c.yaml');
  });

  it('ignore an empty variable', () => {
    expect(merge({}, { FIRECREW_LISTEN: '', FIRECREW_CEILING: '', FIRECREW_LEASE_TTL_MS: '' })).toEqual({});
  });

  it.each([
    ['an unknown key', { lisen: {} }, {}],
    ['an unknown key of a section', { limits: { turnTimeout: 1 } }, {}],
    ['a number that is none', {}, { FIRECREW_TURN_TIMEOUT_MS: '5m' }],
    ['an address without a port', {}, { FIRECREW_LISTEN: 'localhost' }],
    ['a port out of bounds', {}, { FIRECREW_LISTEN: 'localhost:70000' }],
    ['a database of another kind', { databaseUrl: 'mysql://h/d' }, {}],
    ['a driver that is not there', {}, { FIRECREW_DRIVER_FLOOR: 'docker' }],
    ['a relative Firecracker', {}, { FIRECREW_FIRECRACKER_PROGRAM: 'firecracker' }],
    ['an unknown key of the jailer', { firecracker: { jailer: { uid: 0 } } }, {}],
    ['layers of no size', { setupLayers: { maxMib: 0 } }, {}],
    ['a relative CA file', {}, { FIRECREW_GIT_CA_FILE: 'ca.pem' }],
    ['a relative policy', {}, { FIRECREW_POLICY_FILE: 'p.yaml' }],
    ['a ceiling beside a policy', { ceiling: [] }, { FIRECREW_POLICY_FILE: '/etc/p.yaml' }],
  ])('refuse %s', (_what, file, env) => {
    expect(() => merge(file, env)).toThrow(expect.objectContaining({ code: 'settings_invalid' }));
  });

  it.each([
    ['127.0.0.1:80', { host: '127.0.0.1', port: 80 }],
    ['[::1]:0', { host: '::1', port: 0 }],
    ['::1:0', undefined],
    ['host', undefined],
    [':80', undefined],
  ])('read the address %s', (text, address) => {
    expect(parseListen(text)).toEqual(address);
  });

  it('are all in the documentation', () => {
    const document = readFileSync(new URL('../../../docs/cli.md', import.meta.url), 'utf8');
    const keys = Object.keys(settingsSchema.shape);
    expect(keys.filter((key) => !document.includes(`\`${key}`))).toEqual([]);
    expect(SETTING_VARIABLES.filter((name) => !document.includes(`\`${name}\``))).toEqual([]);
  });
});
