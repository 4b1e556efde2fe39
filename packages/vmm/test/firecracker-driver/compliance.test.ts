import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type GuestOwner, probeBubblewrap } from '../../src/index.ts';
import { type DriverRig, driverCases, type SharedRig, shareVm } from '../../src/testing/index.ts';
import { FirecrackerRig, type SimulatedHost } from './rig.ts';

const VM_USER: GuestOwner = { uid: 65_531, gid: 65_531 };
const bubblewrap = await probeBubblewrap();
const missing = bubblewrap.usable ? undefined : `the simulated guest is a sandbox: ${bubblewrap.reason}`;
const notRoot = process.getuid?.() === 0 ? undefined : 'only root can give a VM a user of its own';

/** Cases for the modes that differ from the others in how a process is found and ended. */
const ENDS = driverCases.filter(({ name }) => /rescued|destroy|found by its mark|cannot come up/.test(name));

const modes = [
  { mode: 'without the jailer', owner: undefined, jailer: undefined, cases: ENDS, without: missing },
  { mode: 'without the jailer, as a user of its own', owner: VM_USER, jailer: undefined, cases: ENDS, without: missing ?? notRoot },
  { mode: 'in a jail', owner: VM_USER, jailer: {}, cases: driverCases, without: missing ?? notRoot },
  {
    mode: 'in a jail with its own processes',
    owner: VM_USER,
    jailer: { processNamespace: true },
    cases: ENDS,
    without: missing ?? notRoot,
  },
  { mode: 'in a jail of a jailer that leaves', owner: VM_USER, jailer: { daemonize: true }, cases: ENDS, without: missing ?? notRoot },
] as const;

let rig: FirecrackerRig;
let cgroups = '';
beforeAll(async () => {
  rig = await FirecrackerRig.make();
  cgroups = join(rig.folder, 'cgroups');
  await mkdir(cgroups);
});
afterAll(async () => {
  const left = (await readdir(rig.folder)).filter((name) => /^v\d+$/.test(name));
  const groups = await readdir(cgroups, { recursive: true });
  await rig.remove();
  // Every VM has removed its own folder and its own group.
  expect(left).toEqual([]);
  expect(groups.filter((name) => name !== 'firecrew')).toEqual([]);
});

describe.each(modes)('the firecracker driver $mode', ({ owner, jailer, cases, without }) => {
  if (without !== undefined) {
    it.skip.each(cases)(`$name (${without})`, () => undefined);
    return;
  }
  let one: DriverRig;
  let shared: SharedRig;
  beforeAll(async () => {
    const host = await makeHost();
    const broken = await makeHost('silent');
    one = {
      driver: host.driver,
      newSpec: async () => host.newSpec(),
      broken: async () => ({ driver: broken.driver, spec: broken.newSpec() }),
    };
    shared = shareVm(one);
  });
  afterAll(async () => {
    const report = await shared.close();
    if (report !== undefined) expect(report).toMatchObject({ removed: true, left: [] });
  });

  function makeHost(guest?: 'silent'): Promise<SimulatedHost> {
    return rig.host({
      simulator: { cgroups, ...(guest === undefined ? {} : { guest }) },
      driver: { cgroupRoot: cgroups, ...(guest === undefined ? {} : { bootTimeoutMs: 1500 }) },
      jailer,
      ...(owner === undefined ? {} : { owner }),
    });
  }

  it.each(cases.filter(({ needsIsolation }) => !needsIsolation))('$name', ({ run, needsOwnVm }) => run(needsOwnVm ? one : shared));
  const boundary = cases.filter(({ needsIsolation }) => needsIsolation);
  it.skip.each(boundary)('$name (needs a real VM: the simulated guest is a sandbox)', () => undefined);
});
