import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findMarked, probeBubblewrap, startExec, type Vm } from '../../src/index.ts';
import { FirecrackerRig, type HostSetup } from './rig.ts';

const bubblewrap = await probeBubblewrap();
const withGuest = it.skipIf(!bubblewrap.usable);
const reason = bubblewrap.usable ? '' : ` (the simulated guest is a sandbox: ${bubblewrap.reason})`;
const asRoot = it.skipIf(process.getuid?.() !== 0);
const rootReason = process.getuid?.() === 0 ? '' : ' (only root can jail)';
const JAILED: HostSetup = { owner: { uid: 65_530, gid: 65_530 }, jailer: {} };

let rig: FirecrackerRig;
beforeAll(async () => {
  rig = await FirecrackerRig.make();
});
afterAll(async () => {
  const left = (await readdir(rig.folder)).filter((name) => /^v\d+$/.test(name));
  await rig.remove();
  expect(left).toEqual([]);
});

/** Boots and expects that to fail, with nothing left; gives the error behind `boot_failed`. */
async function failedBoot(setup: HostSetup): Promise<{ code: string | undefined; message: string }> {
  const host = await rig.host(setup);
  const spec = host.newSpec();
  const error: unknown = await host.driver.boot(spec).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  expect(error).toMatchObject({ code: 'boot_failed' });
  expect([existsSync(spec.folder), findMarked(spec.attemptMarker)]).toEqual([false, []]);
  const { cause, message } = error as Error;
  return { code: codeOf(cause), message };
}

/** The Firecracker of a VM whose guest runs nothing. */
async function pidOf(vm: Vm): Promise<number> {
  const [pid, ...more] = await vm.pids();
  if (pid === undefined || more.length > 0) throw new Error(`${more.length + 1} processes`);
  return pid;
}

describe('a boot with Firecracker fails by name, and leaves nothing', () => {
  it.each<[string, HostSetup, string, string]>([
    ['an older version', { simulator: { version: '1.14.3' } }, 'firecracker_unsupported', '"1.14.3" cannot be used (too_old)'],
    ['another major version', { simulator: { version: '2.0.0' } }, 'firecracker_unsupported', 'unknown_major'],
    ['a version that is none', { simulator: { version: '1.16.x' } }, 'firecracker_unsupported', 'unreadable'],
    [
      'a process that never listens',
      { simulator: { api: 'absent' }, driver: { apiTimeoutMs: 500 } },
      'firecracker_failed',
      'its API was not there within 500 ms',
    ],
    [
      'a process that answers nothing',
      { simulator: { api: 'silent' }, driver: { apiTimeoutMs: 500 } },
      'firecracker_failed',
      'GET /version was not answered: no answer within 500 ms',
    ],
    ['words that are no JSON', { simulator: { api: 'notJson' } }, 'firecracker_refused', 'Invalid header. All previous unanswered'],
    [
      'a forbidden call at the start',
      { simulator: { api: 'endsAtStart', exitCode: 148 } },
      'firecracker_failed',
      'it ended: vmm_forbidden_call',
    ],
    ['huge pages that are not there', { simulator: { api: 'endsAtStart', exitCode: 149 } }, 'firecracker_failed', 'vmm_memory_missing'],
    ['a program that is not there', { driver: { program: '/no/such/firecracker' } }, 'firecracker_failed', 'ENOENT'],
    [
      'a program that is no Firecracker',
      { driver: { program: '/bin/false' } },
      'firecracker_failed',
      'it ended (exit 1) before it listened',
    ],
    ['a kernel that panics at once', { simulator: { guest: 'panics' } }, 'vm_panicked_at_boot', 'guest_panic'],
    ['a guest that never dials', { simulator: { guest: 'silent' }, driver: { bootTimeoutMs: 800 } }, 'vm_boot_hung', 'agent stands still'],
  ])('%s', async (_, setup, code, words) => {
    const failure = await failedBoot(setup);
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(words);
  });

  withGuest(`an agent that cannot start${reason}`, async () => {
    const failure = await failedBoot({ simulator: { agentBundle: '/no/such/bundle' } });
    expect(failure.code).toBe('vm_ended_at_boot');
    expect(failure.message).toContain('guest_reset');
  });

  asRoot.each<[string, HostSetup, string, string]>([
    ['a jailer that is not there', { ...JAILED, driver: { jailer: { program: '/no/such/jailer' } } }, 'firecracker_failed', 'ENOENT'],
    [
      'a jailer that ends, and leaves nobody',
      { ...JAILED, driver: { jailer: { program: '/bin/false', daemonize: true } } },
      'jail_failed',
      'the jailer started nothing',
    ],
    [
      'a forbidden call of a process that is nobody his child',
      { ...JAILED, jailer: { processNamespace: true }, simulator: { api: 'endsAtStart', exitCode: 148 } },
      'firecracker_failed',
      'it ended: vmm_forbidden_call',
    ],
    ['an older version in a jail', { ...JAILED, simulator: { version: '1.14.0' } }, 'firecracker_unsupported', 'too_old'],
  ])(`%s${rootReason}`, async (_, setup, code, words) => {
    const failure = await failedBoot(setup);
    expect(failure.code).toBe(code);
    expect(failure.message).toContain(words);
  });

  it('a bzImage, which only later releases boot', async () => {
    const host = await rig.host({
      driver: {
        openFiles: async () => {
          const files = await rig.openFiles();
          return { ...files, vmlinux: files.base };
        },
      },
    });
    await expect(host.driver.boot(host.newSpec())).rejects.toMatchObject({
      message: expect.stringContaining('Kernel Loader: failed to load ELF'),
    });
  });
});

describe('what no VM can be made of', () => {
  it('is refused before anything is made: a path that is too long, in bytes', async () => {
    const host = await rig.host();
    const fits = 107 - '/m/v_52'.length - rig.folder.length - 1;
    const long = host.newSpec({ folder: join(rig.folder, 'x'.repeat(fits + 1)) });
    await expect(host.driver.boot(long)).rejects.toMatchObject({ code: 'socket_path_too_long' });
    // As many letters, and more bytes.
    const wide = host.newSpec({ folder: join(rig.folder, `${'x'.repeat(fits - 1)}ü`) });
    await expect(host.driver.boot(wide)).rejects.toMatchObject({ code: 'socket_path_too_long' });
    expect([existsSync(long.folder), existsSync(wide.folder)]).toEqual([false, false]);
  });

  it('is refused: a folder with something in it, a jail without a user, a limit that is none', async () => {
    const host = await rig.host();
    const full = host.newSpec();
    await mkdir(full.folder);
    await writeFile(join(full.folder, 'kept'), 'yes');
    await expect(host.driver.boot(full)).rejects.toMatchObject({ code: 'bad_boot_spec' });
    expect(await readdir(full.folder)).toEqual(['kept']);
    const jailed = await rig.host({ jailer: {} });
    const spec = jailed.newSpec();
    await expect(jailed.driver.boot(spec)).rejects.toMatchObject({
      code: 'bad_boot_spec',
      message: expect.stringContaining('needs a user'),
    });
    await expect(rig.host({ driver: { diskLimits: { bandwidth: { size: 0, refillMs: 1000 } } } })).rejects.toMatchObject({
      code: 'bad_rate_limit',
    });
    await rm(full.folder, { recursive: true });
  });
});

describe('a VM that ends', () => {
  async function endOf(setup: HostSetup, end: (vm: Vm) => Promise<void> | void): Promise<string> {
    const host = await rig.host(setup);
    const vm = await host.driver.boot(host.newSpec());
    try {
      await end(vm);
      const exit = await vm.exited;
      return `${exit.code ?? exit.signal ?? 'unknown'} ${exit.detail ?? ''}`;
    } finally {
      expect(await vm.destroy()).toMatchObject({ removed: true, left: [] });
    }
  }
  const signal = (name: NodeJS.Signals) => async (vm: Vm) => {
    process.kill(await pidOf(vm), name);
  };
  const destroyed = (vm: Vm): void => void vm.destroy();

  withGuest.each<[string, HostSetup, (vm: Vm) => Promise<void> | void, RegExp]>([
    ['was asked to, and is told from one that panicked', {}, destroyed, /^0 stopped/],
    ['after a panic of its kernel has the same exit code', {}, signal('SIGUSR1'), /^0 guest_panic.*Kernel panic - not syncing/],
    ['by a forbidden call', { simulator: { onSignal: 148 } }, signal('SIGUSR1'), /^148 vmm_forbidden_call/],
    ['by a signal', {}, signal('SIGKILL'), /^SIGKILL vmm_killed/],
  ])(`%s${reason}`, async (_, setup, end, detail) => {
    expect(await endOf(setup, end)).toMatch(detail);
  });

  withGuest(`because its agent ended by itself is no orderly end${reason}`, async () => {
    const detail = await endOf({}, async (vm) => {
      const argv = ['/bin/sh', '-c', 'kill -9 $PPID'];
      await startExec(await vm.session(), { id: 'end', argv, cwd: '/', timeoutMs: 5000 }).catch(() => undefined);
    });
    expect(detail).toMatch(/^0 guest_reset.*failed agent: ended with status 137/);
  });

  it.skipIf(process.getuid?.() !== 0 || !bubblewrap.usable)(
    `is told by its metrics where its exit code is nobody's to see${rootReason}${reason}`,
    async () => {
      const setup = { ...JAILED, jailer: { processNamespace: true }, simulator: { onSignal: 149 } };
      expect(await endOf(setup, signal('SIGUSR1'))).toMatch(/^unknown vmm_memory_missing/);
      expect(await endOf({ ...JAILED, jailer: { processNamespace: true } }, signal('SIGKILL'))).toMatch(/^unknown unknown/);
    },
  );

  withGuest(
    `and whose machine stays is ended at its deadline: by the keys, else by force${reason}`,
    async () => {
      const halted = await endOf({ simulator: { guest: 'haltsAfterEnd' } }, destroyed);
      expect(halted).toMatch(/^0 stopped/);
      const deaf = await endOf({ simulator: { guest: 'staysAfterEnd' } }, destroyed);
      expect(deaf).toMatch(/^SIGKILL vmm_killed/);
    },
    60_000,
  );

  withGuest(
    `is destroyed without an answer of its API${reason}`,
    async () => {
      const setup: HostSetup = { simulator: { api: 'silentOnceStarted', guest: 'staysAfterEnd' } };
      expect(await endOf(setup, destroyed)).toMatch(/^SIGKILL vmm_killed/);
    },
    60_000,
  );

  withGuest(
    `is destroyed while it stands still${reason}`,
    async () => {
      expect(
        await endOf({}, async (vm) => {
          process.kill(await pidOf(vm), 'SIGSTOP');
          void vm.destroy();
        }),
      ).toMatch(/^SIGKILL vmm_killed/);
    },
    60_000,
  );
});

describe('a VM that was made', () => {
  withGuest.each(['1.15.1', '1.16.0', '1.17.0'])(`boots with Firecracker %s${reason}`, async (version) => {
    const diskLimits = { bandwidth: { size: 100_000_000, refillMs: 1000, burst: 500_000_000 } };
    const host = await rig.host({ simulator: { version }, driver: { diskLimits } });
    const vm = await host.driver.boot(host.newSpec());
    expect(await vm.destroy()).toMatchObject({ removed: true, left: [] });
  });

  it.skipIf(process.getuid?.() !== 0 || !bubblewrap.usable)(
    `is found in its jail also where the program is a link to another name${rootReason}${reason}`,
    async () => {
      const host = await rig.host(JAILED);
      const file = `${host.firecracker}-v1.16.1-x86_64`;
      await rename(host.firecracker, file);
      await symlink(file, host.firecracker);
      const vm = await host.driver.boot(host.newSpec());
      expect(await vm.destroy()).toMatchObject({ removed: true, left: [] });
    },
  );

  withGuest(`gives its user nothing to change but its own disk${reason}`, async () => {
    const host = await rig.host();
    const spec = host.newSpec();
    const vm = await host.driver.boot(spec);
    try {
      expect((await readdir(spec.folder)).sort()).toEqual(['initrd', 'm', 'scratch.ext4']);
      expect((await readdir(join(spec.folder, 'm'))).sort()).toEqual(['a', 'console', 'log', 'metrics', 'v', 'v_52']);
    } finally {
      await vm.destroy();
    }
  });
});
