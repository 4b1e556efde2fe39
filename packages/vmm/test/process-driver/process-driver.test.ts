import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackTree } from '@firecrew/workspace';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BootSpec, GuestOwner } from '../../src/index.ts';
import { getTree, ProcessDriver, probeBubblewrap } from '../../src/index.ts';
import { type DriverRig, driverCases, shell, withVm } from '../../src/testing/index.ts';
import { buildGuestPayload, type GuestPayload } from '../guest-payload.ts';

const OTHER_USER: GuestOwner = { uid: 65_532, gid: 65_532 };
const isRoot = process.getuid?.() === 0;
const bubblewrap = await probeBubblewrap();
const missing = bubblewrap.usable ? undefined : bubblewrap.reason;
const notRoot = isRoot ? undefined : 'only root can start a guest as another user';

let payload: GuestPayload;
let count = 0;
beforeAll(async () => {
  payload = await buildGuestPayload();
});
afterAll(async () => {
  // Every VM has removed its own folder.
  const left = await readdir(payload.folder);
  await payload.remove();
  expect(left).toEqual(['guest-agent.cjs']);
});

async function newSpec(owner: GuestOwner | undefined): Promise<BootSpec> {
  count += 1;
  return {
    vmId: `vm-${count}`,
    folder: join(payload.folder, `v${count}`),
    guestAgent: { node: process.execPath, bundle: payload.bundle },
    bindPaths: [],
    path: '/usr/local/bin:/usr/bin:/bin',
    caBundle: null,
    limits: { memoryMib: 1024, diskMib: 2048 },
    allowUnisolated: true,
    attemptMarker: randomUUID(),
    onStream: () => undefined,
    onRefused: () => undefined,
    ...(owner === undefined ? {} : { owner }),
  };
}

const modes = [
  { mode: 'under bubblewrap', use: 'auto', owner: undefined, without: missing, isolation: 'bubblewrap' },
  { mode: 'under bubblewrap as another user', use: 'auto', owner: OTHER_USER, without: missing ?? notRoot, isolation: 'bubblewrap' },
  { mode: 'without isolation', use: 'off', owner: undefined, without: undefined, isolation: 'none' },
] as const;

describe.each(modes)('the process driver $mode', ({ use, owner, without, isolation }) => {
  const rig: DriverRig = {
    driver: new ProcessDriver({ bubblewrap: use, ...(owner === undefined ? {} : { owner }) }),
    newSpec: () => newSpec(owner),
    broken: async () => {
      const spec = await newSpec(owner);
      const { node } = spec.guestAgent;
      return { driver: rig.driver, spec: { ...spec, guestAgent: { node, bundle: node } } };
    },
  };
  const cases = driverCases.filter((one) => !one.needsIsolation || isolation !== 'none');
  if (without !== undefined) {
    it.skip.each(cases)(`$name (${without})`, () => undefined);
    return;
  }
  it('says what separates its guests', async () => {
    expect(await rig.driver.probe()).toMatchObject({ available: true, isolation });
  });
  it.each(cases)('$name', ({ run }) => run(rig));

  it.skipIf(isolation === 'none')(
    'a command that fills the quota of /tmp is told from one that has room, and its tree comes back',
    async () => {
      const spec = await newSpec(owner);
      const vm = await rig.driver.boot({ ...spec, limits: { ...spec.limits, diskMib: 8 } });
      try {
        const fill = await shell(vm, 'echo half > half.txt; head -c 20000000 /dev/zero > /tmp/fill');
        expect(fill).toMatchObject({ kind: 'exited', exitCode: 1, diskRoomBytes: 0 });
        const back = await getTree(await vm.session(), 'quota', vm.guestPaths.workspace);
        const unpacked = await unpackTree(back.archive, join(payload.folder, 'back'));
        await back.trailer(unpacked.trailer);
        expect(await readFile(join(payload.folder, 'back/half.txt'), 'utf8')).toBe('half\n');
        await rm(join(payload.folder, 'back'), { recursive: true });
        const freed = await shell(vm, 'rm /tmp/fill');
        expect(freed.diskRoomBytes).toBeGreaterThan(1024 * 1024);
      } finally {
        await vm.destroy();
      }
    },
  );

  it.skipIf(isolation === 'none')('what the guest is given of the host is read-only', () =>
    withVm(rig, async ({ vm }) => {
      const { output } = await shell(
        vm,
        'for f in /usr/x /opt/firecrew/x /opt/firecrew/guest-agent.cjs /etc/passwd; do (echo x >> $f) 2>/dev/null && echo "$f"; done; true',
      );
      expect(output).toBe('/opt/firecrew/x\n');
    }),
  );
});
