import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FirecrackerSettings } from '../../src/firecracker-driver/firecracker-settings.ts';
import { probeFirecracker } from '../../src/firecracker-driver/probe-firecracker.ts';
import type { DriverProbe } from '../../src/index.ts';
import { FirecrackerRig, type SimulatedHost } from './rig.ts';

const needsRoot = process.getuid?.() === 0 ? '' : ' (the jailer needs root)';
const asRoot = it.skipIf(process.getuid?.() !== 0);
const MOUNTS = '22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n';

let rig: FirecrackerRig;
let host: SimulatedHost;
let cgroups = '';
beforeAll(async () => {
  rig = await FirecrackerRig.make();
  host = await rig.host();
  cgroups = join(rig.folder, 'cgroup2');
  await mkdir(cgroups);
  await writeFile(join(cgroups, 'cgroup.controllers'), 'cpuset cpu io memory hugetlb pids\n');
});
afterAll(() => rig.remove());

interface Look {
  readonly settings?: Partial<FirecrackerSettings>;
  readonly mounts?: string;
  readonly ksm?: string;
  readonly missing?: boolean;
}

async function probe({ settings = {}, mounts = MOUNTS, ksm, missing = false }: Look = {}): Promise<DriverProbe> {
  const mountsFile = join(rig.folder, 'mountinfo');
  await writeFile(mountsFile, mounts);
  const ksmFile = join(rig.folder, 'ksm');
  if (ksm !== undefined) await writeFile(ksmFile, ksm);
  const whole: FirecrackerSettings = {
    program: host.firecracker,
    jailer: { program: host.jailer },
    cpus: 1,
    diskLimits: undefined,
    bootTimeoutMs: 1000,
    apiTimeoutMs: 1000,
    kvmDevice: '/dev/null',
    cgroupRoot: cgroups,
    architecture: 'x64',
    ...settings,
  };
  const openFiles = () => (missing ? Promise.reject(new Error('the store has nothing named kernel')) : rig.openFiles());
  return probeFirecracker(whole, openFiles, rig.folder, { mountsFile, ksmFile: ksm === undefined ? '/no/such/file' : ksmFile });
}

describe('the probe of a host for Firecracker', () => {
  asRoot(`says what separates its guests${needsRoot}`, async () => {
    expect(await probe()).toEqual({
      available: true,
      isolation: 'vm',
      detail: 'Firecracker 1.16.1, hardware virtualisation by kvm, each in a jail of its own user; own kernel, no network card',
    });
  });

  it('says it when there is no jail', async () => {
    const found = await probe({ settings: { jailer: undefined } });
    expect(found).toMatchObject({ available: true, detail: expect.stringContaining('without the jailer: for tests and laptops') });
  });

  it('warns of memory that is merged between VMs', async () => {
    const without = { jailer: undefined };
    expect((await probe({ settings: without, ksm: '1\n' })).detail).toMatch(/; WARNING: memory of VMs is merged .* is 1\)/);
    expect((await probe({ settings: without, ksm: '0\n' })).detail).not.toContain('WARNING');
  });

  it.each<[string, Look, string]>([
    ['no program', { settings: { program: '/no/such/firecracker' } }, 'ENOENT'],
    ['another program', { settings: { program: '/bin/true' } }, 'version unknown (unreadable)'],
    ['no device', { settings: { kvmDevice: '/no/such/kvm' } }, '/no/such/kvm cannot be opened for reading and writing'],
    ['nothing to boot', { settings: { jailer: undefined }, missing: true }, 'the store has nothing named kernel'],
  ])('says no: %s', async (_, look, words) => {
    const found = await probe(look);
    expect([found.available, found.isolation]).toEqual([false, 'vm']);
    expect(found.detail).toContain(words);
  });

  it('says no: a version that is too old', async () => {
    const old = await rig.host({ simulator: { version: '1.14.2' } });
    expect(await probe({ settings: { program: old.firecracker } })).toMatchObject({
      available: false,
      detail: expect.stringContaining('version 1.14.2 (too_old)'),
    });
  });

  asRoot.each<[string, () => Promise<Look>, string]>([
    ['no jailer', async () => ({ settings: { jailer: { program: '/no/such/jailer' } } }), 'ENOENT'],
    [
      'a name that the jailer refuses',
      async () => {
        const named = join(rig.folder, 'fc');
        await writeFile(named, `#!/bin/sh\nexec ${host.firecracker} "$@"\n`);
        await chmod(named, 0o755);
        return { settings: { program: named } };
      },
      'its name must hold "firecracker"',
    ],
    [
      'a network namespace that is not there',
      async () => ({ settings: { jailer: { program: host.jailer, networkNamespace: '/no/such/netns' } } }),
      'ENOENT',
    ],
    ['cgroup v1', async () => ({ settings: { cgroupRoot: rig.folder } }), 'is no root of cgroup v2'],
    [
      'a missing controller',
      async () => {
        const few = join(rig.folder, 'few');
        await mkdir(few);
        await writeFile(join(few, 'cgroup.controllers'), 'cpu io\n');
        return { settings: { cgroupRoot: few } };
      },
      'cgroup v2 has no memory, pids controller here',
    ],
    ['nodev', async () => ({ mounts: '22 1 8:1 / / rw,nodev - ext4 /dev/sda1 rw\n' }), 'mounted nodev: no jail works there'],
    ['noexec', async () => ({ mounts: '22 1 8:1 / / rw,noexec,nodev - ext4 /dev/sda1 rw\n' }), 'mounted nodev, noexec'],
  ])(`says no to a jail: %s${needsRoot}`, async (_, look, words) => {
    expect(await probe(await look())).toMatchObject({ available: false, detail: expect.stringContaining(words) });
  });
});
