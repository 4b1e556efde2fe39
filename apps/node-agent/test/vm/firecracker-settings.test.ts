import { FirecrackerDriver } from '@firecrew/vmm';
import { describe, expect, it } from 'vitest';
import {
  firecrackerConfigSchema,
  firecrackerDriverOf,
  firecrackerLaunchOf,
  firecrackerLaunchSchema,
} from '../../src/vm/firecracker-settings.ts';

const STORE = { store: '/var/lib/firecrew/images' };
const id = (digit: string): `sha256:${string}` => `sha256:${digit.repeat(64)}`;
const ARTIFACTS = { kernel: id('1'), payload: id('2'), image: id('3') };

describe('the settings of Firecracker on a node', () => {
  it('jail every VM unless that is switched off by name', () => {
    expect(firecrackerConfigSchema.parse(STORE)).toEqual({
      ...STORE,
      program: '/usr/local/bin/firecracker',
      jailer: { program: '/usr/local/bin/jailer' },
      cpus: 1,
      bootTimeoutMs: 30_000,
      kernel: 'kernel',
      payload: 'payload',
      image: 'default',
    });
    expect(firecrackerConfigSchema.parse({ ...STORE, jailer: null }).jailer).toBe(null);
  });

  it.each([
    ['an unknown key', { ...STORE, networks: 1 }],
    ['an unknown key of the jailer', { ...STORE, jailer: { uid: 0 } }],
    ['no store', {}],
    ['a relative program', { ...STORE, program: 'firecracker' }],
    ['a group that leads up', { ...STORE, jailer: { parentCgroup: '../system.slice' } }],
    ['an absolute group', { ...STORE, jailer: { parentCgroup: '/vms' } }],
    ['a file of a group without a value', { ...STORE, jailer: { cgroup: ['io.max'] } }],
    ['33 processors', { ...STORE, cpus: 33 }],
    ['a limit of nothing', { ...STORE, diskLimits: { bandwidth: { size: 0, refillMs: 100 } } }],
  ])('refuse %s', (_, value) => {
    expect(firecrackerConfigSchema.safeParse(value).success).toBe(false);
  });

  it('become those of an attempt with the artifacts that its names led to, and survive their file', () => {
    const jailer = {
      parentCgroup: 'vms/agents',
      cgroup: ['io.weight=50'],
      networkNamespace: '/var/run/netns/none',
      processNamespace: true,
    };
    const config = firecrackerConfigSchema.parse({ ...STORE, jailer, image: 'claude' });
    const launch = firecrackerLaunchOf(config, ARTIFACTS);
    expect(launch).not.toHaveProperty('image');
    expect(firecrackerLaunchSchema.parse(JSON.parse(JSON.stringify(launch)))).toEqual(launch);
    expect(firecrackerDriverOf(launch)).toBeInstanceOf(FirecrackerDriver);
  });

  it('end at a limit that would starve the disk, before any VM is booted', () => {
    const diskLimits = { bandwidth: { size: 4096, refillMs: 1000 } };
    const launch = firecrackerLaunchOf(firecrackerConfigSchema.parse({ ...STORE, diskLimits }), ARTIFACTS);
    expect(() => firecrackerDriverOf(launch)).toThrow(expect.objectContaining({ code: 'bad_rate_limit' }));
  });
});
