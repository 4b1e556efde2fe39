import { QemuDriver } from '@firecrew/vmm';
import { describe, expect, it } from 'vitest';
import { qemuConfigSchema, qemuDriverOf, qemuLaunchOf, qemuLaunchSchema } from '../../src/vm/qemu-settings.ts';

const QEMU = { accelerator: 'tcg', store: '/var/lib/firecrew/images' };
const id = (digit: string): `sha256:${string}` => `sha256:${digit.repeat(64)}`;
const ARTIFACTS = { kernel: id('1'), payload: id('2'), image: id('3') };

describe('the settings of QEMU on a node', () => {
  it.each(['vms', 'system.slice/firecrew.service', 'user.slice/user@1000.service/..vms'])(
    'name the group %s below the root of cgroup v2',
    (parent) => {
      const config = qemuConfigSchema.parse({ ...QEMU, cgroup: { parent, required: true } });
      const launch = qemuLaunchOf(config, ARTIFACTS);
      expect(qemuLaunchSchema.parse(JSON.parse(JSON.stringify(launch)))).toEqual(launch);
      expect(launch.cgroup).toEqual({ parent, required: true });
      expect(qemuDriverOf(launch, false)).toBeInstanceOf(QemuDriver);
    },
  );

  it.each(['', '/', '/vms', '..', '../system.slice', 'vms/../..', 'vms/', 'vms//a', '.', 'a b', 'vms\n'])(
    'refuse the group %j',
    (parent) => {
      expect(qemuConfigSchema.safeParse({ ...QEMU, cgroup: { parent } }).success).toBe(false);
    },
  );

  it('refuse an unknown key, and demand nothing where they say nothing', () => {
    expect(qemuConfigSchema.safeParse({ ...QEMU, cgroup: { path: 'vms' } }).success).toBe(false);
    expect(qemuConfigSchema.parse(QEMU)).not.toHaveProperty('cgroup');
  });
});
