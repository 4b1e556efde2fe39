import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Driver, findMarked, ProcessDriver, probeBubblewrap, type Vm } from '@firecrew/vmm';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SelftestSpec, selftestDriver } from '../../src/vm/selftest.ts';

const bubblewrap = await probeBubblewrap();
const isolated = it.skipIf(!bubblewrap.usable);
const reason = bubblewrap.usable ? '' : ` (${bubblewrap.reason})`;
const clock = () => performance.now();

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-self-'));
  await build({
    entryPoints: [fileURLToPath(new URL('../../../guest-agent/src/main.ts', import.meta.url))],
    outfile: join(folder, 'guest-agent.cjs'),
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'cjs',
  });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function newSpec(): SelftestSpec {
  return {
    vmId: 'selftest',
    folder: join(folder, randomUUID().slice(0, 8)),
    guestAgent: { node: process.execPath, bundle: join(folder, 'guest-agent.cjs') },
    bindPaths: [],
    path: '/usr/bin:/bin',
    caBundle: null,
    limits: { memoryMib: 512, diskMib: 64 },
    allowUnisolated: true,
    attemptMarker: randomUUID(),
  };
}

/** A driver whose VMs are those of the process driver, with something changed. */
function changed(change: (vm: Vm) => Vm): Driver {
  const driver = new ProcessDriver();
  return { name: 'qemu', probe: () => driver.probe(), boot: async (spec) => change(await driver.boot(spec)) };
}

describe('the self-test of a driver', () => {
  isolated(`boots, runs a command, and finds nothing left${reason}`, async () => {
    expect(await selftestDriver(new ProcessDriver(), newSpec(), clock)).toEqual({
      driver: 'process',
      ok: true,
      detail: expect.stringMatching(/; a VM was up after \d+ ms, ran a command, had no network card, and left nothing$/),
    });
  });

  isolated(`that is aborted ends its VM, in the middle of its boot and of its command, and leaves nothing${reason}`, async () => {
    await writeFile(join(folder, 'hung.cjs'), 'setInterval(() => undefined, 1000);\n');
    for (const at of ['boot', 'command'] as const) {
      const spec = newSpec();
      const abort = new AbortController();
      const driver = new ProcessDriver();
      const stopping: Driver = {
        name: 'qemu',
        probe: () => driver.probe(),
        boot: async (own) => {
          if (at === 'boot') setTimeout(() => abort.abort(), 50);
          const guestAgent = { node: process.execPath, bundle: join(folder, at === 'boot' ? 'hung.cjs' : 'guest-agent.cjs') };
          const vm = await driver.boot({ ...own, guestAgent });
          abort.abort();
          await vm.exited;
          return vm;
        },
      };
      expect(await selftestDriver(stopping, spec, clock, abort.signal)).toMatchObject({ ok: false });
      expect([existsSync(spec.folder), findMarked(spec.attemptMarker)]).toEqual([false, []]);
    }
  });

  it('says what the probe says where the driver cannot be used', async () => {
    const driver: Driver = {
      name: 'firecracker',
      probe: async () => ({ available: false, isolation: 'vm', detail: 'no /dev/kvm' }),
      boot: () => Promise.reject(new Error('it was booted all the same')),
    };
    expect(await selftestDriver(driver, newSpec(), clock)).toEqual({ driver: 'firecracker', ok: false, detail: 'no /dev/kvm' });
  });

  it('says why a boot failed', async () => {
    const spec = { ...newSpec(), guestAgent: { node: process.execPath, bundle: '/no/such/agent' } };
    expect(await selftestDriver(new ProcessDriver(), spec, clock)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('did not come up'),
    });
  });

  isolated(`fails a VM that leaves something, and one that has the network of its host${reason}`, async () => {
    const leaving = changed((vm) => ({
      ...vm,
      id: vm.id,
      pids: () => vm.pids(),
      session: (ms) => vm.session(ms),
      rescue: (path) => vm.rescue(path),
      destroy: async () => ({ ...(await vm.destroy()), left: ['process 4711'] }),
    }));
    expect(await selftestDriver(leaving, newSpec(), clock)).toMatchObject({
      ok: false,
      detail: expect.stringContaining('and left process 4711'),
    });
    const open = await selftestDriver(new ProcessDriver({ bubblewrap: 'off' }), newSpec(), clock);
    const alone = open.detail.includes('had no network card');
    // A host may have no card either.
    if (!alone) expect(open).toMatchObject({ ok: false, detail: expect.stringMatching(/its VM answered "32\\n42\\n/) });
  });
});
