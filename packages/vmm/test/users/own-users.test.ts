import { describe, expect, it } from 'vitest';
import type { BootSpec, DestroyReport, Driver, Vm } from '../../src/port/driver.ts';
import { ownUsers } from '../../src/users/own-users.ts';

const SPEC: BootSpec = {
  vmId: 'vm-1',
  folder: '/vm',
  guestAgent: { node: '/unused', bundle: '/unused' },
  bindPaths: [],
  path: '/bin',
  caBundle: null,
  limits: { memoryMib: 512, diskMib: 1024 },
  allowUnisolated: false,
  attemptMarker: 'marker-1',
  onStream: () => undefined,
  onRefused: () => undefined,
};

interface Rig {
  readonly driver: Driver;
  readonly specs: BootSpec[];
  readonly held: Set<number>;
  /** To which VM each user was lent. */
  readonly lentTo: string[];
}

/** A driver that notes what it boots, and users that count up. */
function rigOf(report: DestroyReport, failure?: Error): Rig {
  const specs: BootSpec[] = [];
  const held = new Set<number>();
  const lentTo: string[] = [];
  let next = 5000;
  const vm: Vm = {
    id: 'vm-1',
    isolation: 'vm',
    guestPaths: { workspace: '/w', home: '/h', tmp: '/t', agentDir: '/a', taskDir: '/k' },
    socketPath: '/s',
    exited: new Promise(() => undefined),
    pids: async () => [4711],
    session: () => Promise.reject(new Error('no session')),
    rescue: () => Promise.reject(new Error('no rescue')),
    destroy: async () => report,
  };
  const inner: Driver = {
    name: 'qemu',
    probe: async () => ({ available: true, isolation: 'vm', detail: 'fake' }),
    boot: async (spec) => {
      specs.push(spec);
      if (failure !== undefined) throw failure;
      return vm;
    },
  };
  const take = async (vmId: string) => {
    lentTo.push(vmId);
    next += 1;
    const uid = next;
    held.add(uid);
    return { owner: { uid, gid: uid }, release: () => void held.delete(uid) };
  };
  return { driver: ownUsers(inner, { take }), specs, held, lentTo };
}

const REMOVED: DestroyReport = { removed: true, killed: 0, left: [] };

describe('a driver with users of its own', () => {
  it('gives each VM a user, and another to the one that reads its disk', async () => {
    const { driver, specs, held, lentTo } = rigOf(REMOVED);
    await driver.boot(SPEC);
    await driver.boot({ ...SPEC, vmId: 'vm-2' });
    expect(specs.map(({ owner }) => owner)).toEqual([
      { uid: 5001, gid: 5001 },
      { uid: 5002, gid: 5002 },
    ]);
    expect(await specs[0]?.rescueOwner?.()).toEqual({ uid: 5003, gid: 5003 });
    expect([...held]).toEqual([5001, 5002, 5003]);
    expect(lentTo).toEqual(['vm-1', 'vm-2', 'vm-1.r']);
  });

  it('takes the users of a VM back once nothing of it is left', async () => {
    const { driver, specs, held } = rigOf(REMOVED);
    const vm = await driver.boot(SPEC);
    await specs[0]?.rescueOwner?.();
    expect(await vm.pids()).toEqual([4711]);
    expect(held.size).toBe(2);
    expect(await vm.destroy()).toEqual(REMOVED);
    expect(held.size).toBe(0);
  });

  it('keeps those of a VM that left something', async () => {
    const { driver, held } = rigOf({ removed: false, killed: 0, left: ['process 4711'] });
    await (await driver.boot(SPEC)).destroy();
    expect(held.size).toBe(1);
  });

  it('takes them back when the boot failed', async () => {
    const { driver, held } = rigOf(REMOVED, new Error('no boot'));
    await expect(driver.boot(SPEC)).rejects.toThrow('no boot');
    expect(held.size).toBe(0);
  });
});
