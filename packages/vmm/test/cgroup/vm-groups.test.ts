import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { noteGroup, removeNotedGroups } from '../../src/cgroup/vm-cgroup.ts';
import { VmGroups } from '../../src/cgroup/vm-groups.ts';
import { machineId } from '../../src/processes/machine-id.ts';
import { qemuLimits } from '../../src/qemu-driver/qemu-driver.ts';
import { cgroupStandIn } from '../../src/testing/cgroup-stand-in.ts';

const LIMITS = qemuLimits(512, 2, 'tcg');
const FILES = ['memory.max', 'memory.swap.max', 'pids.max', 'cpu.max'];

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-cgroup-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Folders that a stand-in for cgroup v2 holds. */
const groupsIn = async (root: string): Promise<string[]> =>
  (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);

describe('limits of VMs on this host', () => {
  it('are tried out with a group that is gone afterwards, in which a process was', async () => {
    const places = await cgroupStandIn(folder);
    const joined: string[] = [];
    const remove = async (group: string): Promise<boolean> => {
      joined.push(await readFile(join(group, 'cgroup.procs'), 'utf8'));
      return places.remove(group);
    };
    const groups = new VmGroups({}, { ...places, remove });
    expect(await groups.verdict()).toMatchObject({ parent: places.root, files: FILES, refused: false });
    expect([joined, await groupsIn(places.root)]).toEqual([['0\n'], []]);
    expect(await readFile(join(places.root, 'cgroup.subtree_control'), 'utf8')).toMatch(/^\+/);
  });

  it.each([
    [
      'has no controller for them',
      { controllers: 'cpu io' },
      ['cpu.max'],
      /NOT LIMITED: memory, swap, threads \(.* has no memory controller\)/,
    ],
    ['accounts no swap', { lacking: ['memory.swap.max'] }, ['memory.max', 'pids.max', 'cpu.max'], /NOT LIMITED: swap \(ENOENT/],
    ['has none at all', { controllers: 'hugetlb' }, [], /^NOT LIMITED by the host: .* has no memory controller/],
    ['lets no process join', { lacking: ['cgroup.procs'] }, [], /^$/],
  ] as const)('are left out and named where the host %s, and refused when they are demanded', async (what, options, files, detail) => {
    const places = await cgroupStandIn(folder, options);
    if (what === 'lets no process join') return await expectNoJoin(places);
    expect(await new VmGroups({}, places).demand('vm')).toMatchObject({ files, detail: expect.stringMatching(detail) });
    await expect(new VmGroups({ required: true }, places).demand('vm')).rejects.toMatchObject({ code: 'vm_limits_missing', id: 'vm' });
    expect(await groupsIn(places.root)).toEqual([]);
  });

  /** A folder in the place of the file: a shell can write to no folder, root's neither. */
  async function expectNoJoin(places: Awaited<ReturnType<typeof cgroupStandIn>>): Promise<void> {
    const make = async (group: string): Promise<void> => {
      await places.make(group);
      await mkdir(join(group, 'cgroup.procs'));
    };
    const verdict = await new VmGroups({}, { ...places, make }).verdict();
    expect(verdict).toMatchObject({
      parent: undefined,
      files: [],
      detail: expect.stringMatching(/no group can be made for a VM: .*cgroup\.procs/),
    });
  }

  it('are set below the group that the settings name, which is made', async () => {
    const places = await cgroupStandIn(folder);
    const inner = join(places.root, 'vms');
    await places.make(inner);
    expect(await new VmGroups({ parent: 'vms' }, places).verdict()).toMatchObject({ parent: inner, files: FILES });
    const verdict = await new VmGroups({ parent: 'absent/vms' }, places).verdict();
    expect(verdict.detail).toMatch(/no group can be made for a VM: ENOENT/);
  });

  it('say that the host has no cgroup v2', async () => {
    const places = await cgroupStandIn(folder);
    await writeFile(places.mountsFile, '');
    expect((await new VmGroups({}, places).verdict()).detail).toMatch(/\(cgroup v2 is not mounted here\)$/);
  });
});

describe('the group of a VM', () => {
  it('has the limits of the VM before anything runs in it', async () => {
    const places = await cgroupStandIn(folder);
    const group = join(places.root, machineId('marker', '00000001'));
    const groups = new VmGroups({}, places);
    await groups.make(group, LIMITS, ['memory.max', 'cpu.max']);
    const values = await Promise.all(FILES.map((name) => readFile(join(group, name), 'utf8')));
    expect(values).toEqual([String((512 + 52 + 192 + 256) * 1024 * 1024), '', '', '250000 100000']);
    expect([await groups.remove(group), await groupsIn(places.root)]).toEqual([true, []]);
  });

  it('is not left half made', async () => {
    const places = await cgroupStandIn(folder, { lacking: ['cpu.max'] });
    const group = join(places.root, machineId('marker', '00000001'));
    await expect(new VmGroups({}, places).make(group, LIMITS, ['memory.max', 'cpu.max'])).rejects.toMatchObject({
      code: 'vm_group_failed',
      id: group,
    });
    expect(await groupsIn(places.root)).toEqual([]);
  });

  it('is found by who cleans up after its host process, and only as a group of that attempt', async () => {
    const [own, other, foreign] = [machineId('marker', '00000001'), machineId('another', '00000001'), 'system.slice'].map((name) =>
      join(folder, 'cg', name),
    );
    for (const group of [own, other, foreign]) {
      await mkdir(group ?? '', { recursive: true });
      await noteGroup(folder, group ?? '');
    }
    expect(await removeNotedGroups(folder, 'marker')).toEqual([]);
    expect(await readdir(join(folder, 'cg'))).toEqual([other, foreign].map((group) => group?.split('/').at(-1)).sort());
    expect(await removeNotedGroups(join(folder, 'absent'), 'marker')).toEqual([]);
  });
});
