import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findBootArtifacts, openBootFiles } from '@firecrew/rootfs';
import { type BootSpec, FirecrackerDriver, type FirecrackerDriverOptions } from '@firecrew/vmm';
import { type DriverRig, driverCases, type SharedRig, shareVm, shell, withVm } from '@firecrew/vmm/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { vmSpec } from './support/vm-spec.ts';
import { testVmStore } from './support/vm-store.ts';

/** A real Firecracker and, where VMs are to be jailed, its jailer; both absolute paths. */
const program = process.env.FIRECREW_TEST_FIRECRACKER;
const jailer = process.env.FIRECREW_TEST_JAILER;
const VM_TEST_MS = 120_000;
const OWNER = process.getuid?.() === 0 ? { owner: { uid: 65_532, gid: 65_532 } } : {};

async function whatIsMissing(): Promise<string | undefined> {
  if (program === undefined) return 'FIRECREW_TEST_FIRECRACKER names none';
  const found = await testVmStore();
  return 'missing' in found ? found.missing : undefined;
}

const missing = await whatIsMissing();
const reason = missing === undefined ? '' : ` (not run: ${missing})`;

describe.skipIf(missing !== undefined)(`the firecracker driver with a real Firecracker${reason}`, { timeout: VM_TEST_MS }, () => {
  let folder = '';
  let store = '';
  let shared: SharedRig;
  let count = 0;

  beforeAll(async () => {
    const found = await testVmStore();
    if ('missing' in found) throw new Error(found.missing);
    store = found.root;
    folder = await mkdtemp(join(tmpdir(), 'fcf-'));
    await chmod(folder, 0o711);
    shared = shareVm(one);
  }, VM_TEST_MS);
  afterAll(async () => {
    if (folder === '') return;
    expect(await shared.close()).toMatchObject({ removed: true, left: [] });
    const left = await readdir(folder);
    await rm(folder, { recursive: true, force: true });
    expect(left).toEqual([]);
  });

  const driver = (over: Partial<FirecrackerDriverOptions> = {}): FirecrackerDriver =>
    new FirecrackerDriver({
      openFiles: async () => openBootFiles(store, await findBootArtifacts(store)),
      ...(program === undefined ? {} : { program }),
      ...(jailer === undefined ? {} : { jailer: { program: jailer } }),
      ...over,
    });
  const newSpec = async (): Promise<BootSpec> => {
    count += 1;
    return { ...vmSpec(`v${count}`, folder, { memoryMib: 512, diskMib: 1024 }), ...OWNER };
  };
  /** The payload in the place of the image: no shell and no agent is where they are looked for. */
  const withoutImage: FirecrackerDriverOptions['openFiles'] = async () => {
    const files = await openBootFiles(store, await findBootArtifacts(store));
    return { ...files, base: files.payload, payload: files.base };
  };
  const one: DriverRig = {
    driver: driver(),
    newSpec,
    broken: async () => ({ driver: driver({ openFiles: withoutImage }), spec: await newSpec() }),
  };

  it('finds that this host has what VMs need', async () => {
    expect(await driver({ vmRoot: folder }).probe()).toMatchObject({ available: true, isolation: 'vm' });
  });

  it.each(driverCases)('$name', ({ run, needsOwnVm }) => run(needsOwnVm ? one : shared));

  it('tells a panic of the guest from an end that was asked for', () =>
    withVm(one, async ({ vm }) => {
      await shell(vm, "as-root 'echo 1 > /proc/sys/kernel/sysrq; echo c > /proc/sysrq-trigger'").catch(() => undefined);
      expect(await vm.exited).toMatchObject({ code: 0, detail: expect.stringMatching(/^guest_panic/) });
    }));
});
