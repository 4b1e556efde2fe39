import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findBootArtifacts, openBootFiles } from '@firecrew/rootfs';
import { guestHealth, killExec, QemuDriver, type QemuDriverOptions, startExec, type Vm, waitExec } from '@firecrew/vmm';
import { shell } from '@firecrew/vmm/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from './support/until.ts';
import { vmSpec } from './support/vm-spec.ts';
import { testVmStore } from './support/vm-store.ts';

/** Time for a boot and what is done in it, in `ms`. */
const VM_TEST_MS = 170_000;

/** Difference that a guest's clock may have, with the time that a busy machine takes to tell it, in seconds. */
const NEAR_S = 20;
/** Time without an answer after which an agent is taken for silent, in `ms`. */
const SILENCE_MS = 3000;
const QEMU = '/usr/bin/qemu-system-x86_64';

const store = await testVmStore();
const missing = 'missing' in store ? ` (not run: ${store.missing})` : '';

/** Begins processes that keep nothing of what marks them: no environment, another session, another group, another parent. */
const HIDE = (seconds: number): string =>
  `env -i /bin/setsid /bin/sh -c '/bin/setsid /bin/sleep ${seconds} & exec /bin/sleep ${seconds}' & until ps | grep -q "[s]leep ${seconds}"; do :; done`;

describe.skipIf(missing !== '')(`the guest of a VM${missing}`, { timeout: VM_TEST_MS }, () => {
  let folder = '';
  let program = '';
  let count = 0;
  let vm: Vm;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fcg-'));
    await chmod(folder, 0o711);
    program = join(folder, 'late-qemu');
    await writeFile(program, `#!/bin/sh\nexec ${QEMU} "$@" -rtc base=2020-01-01T00:00:00\n`, { mode: 0o755 });
    vm = await boot({ program });
  }, VM_TEST_MS);
  afterAll(async () => {
    expect(await vm.destroy()).toMatchObject({ removed: true, left: [] });
    await rm(program);
    const left = await readdir(folder);
    await rm(folder, { recursive: true, force: true });
    expect(left).toEqual([]);
  }, VM_TEST_MS);

  async function boot(options: Partial<QemuDriverOptions> = {}): Promise<Vm> {
    if ('missing' in store) throw new Error(store.missing);
    const { root } = store;
    const artifacts = await findBootArtifacts(root);
    const driver = new QemuDriver({ accelerator: 'tcg', openFiles: () => openBootFiles(root, artifacts), ...options });
    count += 1;
    return await driver.boot(vmSpec(`v${count}`, folder, { memoryMib: 320, diskMib: 256 }));
  }

  /** Whether a process has a command line that begins like this. */
  const runs = async (command: string): Promise<boolean> => {
    const { output } = await shell(vm, 'ps -o args', { cwd: '/' });
    return output.split('\n').some((line) => line.startsWith(command));
  };
  const groups = async (): Promise<string[]> => {
    const { output } = await shell(vm, 'cd /sys/fs/cgroup && ls -d firecrew-*', { cwd: '/' });
    return output.trim().split('\n');
  };

  describe('has the clock of its host', () => {
    const offS = async (): Promise<number> => Math.abs(Number((await shell(vm, 'date +%s', { cwd: '/' })).output) - Date.now() / 1000);

    it('from the first command on, though its machine was started years ago', async () => {
      const { output } = await shell(vm, 'cat /sys/class/rtc/rtc0/date', { cwd: '/' });
      expect(output).toBe('2020-01-01\n');
      expect(await offS()).toBeLessThan(NEAR_S);
    });

    it.each(['2001-02-03', '2037-01-01'])('again after it was set to %s', async (date) => {
      await shell(vm, `as-root 'date -s ${date}'`, { cwd: '/' });
      await until('the clock is right again', async () => (await offS()) < NEAR_S, 60_000);
    });
  });

  describe('has a group for each command', () => {
    it('in which its processes are from the first on, with what its kernel counts of them', async () => {
      const { output } = await shell(
        vm,
        'own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); grep oom_kill $own/memory.events; cat $own/cgroup.procs | wc -l; echo 0 2>&1 > $own/../cgroup.procs; (cat /proc/self/cgroup)',
      );
      expect(output).toMatch(/^oom_kill 0\n\d+\n.*Permission denied\n0::\/firecrew-exec-\d+\n$/s);
    });

    it('and ends all of it at its time limit, also what cleared its environment and left its session', async () => {
      const end = await shell(vm, `${HIDE(4721)}; echo hidden; exec sleep 4722`, { timeoutMs: 10_000 });
      expect(end).toMatchObject({ kind: 'timed_out', output: 'hidden\n' });
      expect(await runs('/bin/sleep 4721')).toBe(false);
    });

    it('and ends and counts what a command left behind when it ended by itself', async () => {
      const end = await shell(vm, `${HIDE(4723)}; echo done`);
      expect(end).toMatchObject({ kind: 'exited', exitCode: 0, output: 'done\n', survivors: 2 });
      expect(await runs('/bin/sleep 4723')).toBe(false);
    });

    it('and kills all of it when it is told to', async () => {
      const session = await vm.session();
      const id = randomUUID();
      await startExec(session, { id, argv: ['/bin/sh', '-c', `${HIDE(4724)}; exec sleep 4725`], cwd: '/', timeoutMs: 60_000 });
      await until('it runs', () => runs('sleep 4725'));
      expect(await runs('/bin/sleep 4724')).toBe(true);
      await killExec(session, id, 'SIGKILL');
      expect(await waitExec(session, id, 60_000)).toMatchObject({ kind: 'signalled', signal: 'SIGKILL', survivors: 0 });
      expect(await runs('/bin/sleep 4724')).toBe(false);
    });

    it('and none of a command that has ended', async () => {
      // The one that looks has one.
      expect(await groups()).toEqual([expect.stringMatching(/^firecrew-exec-\d+$/)]);
    });
  });

  describe('that is destroyed', () => {
    /** Stops the agent of a guest, once `before` is done there as root; its processes and its link are there, and nobody answers. */
    async function silence(silent: Vm, before: string): Promise<void> {
      const session = await silent.session();
      const command = `${before}; kill -STOP $(cut -d" " -f1 /proc/1/task/1/children)`;
      await startExec(session, { id: 'silence', argv: ['/bin/as-root', command], cwd: '/', timeoutMs: 60_000 });
      const answer = () =>
        guestHealth(session).then(
          () => 'an answer',
          () => 'none',
        );
      await until('the agent is silent', async () => (await Promise.race([answer(), delay(SILENCE_MS, 'none')])) === 'none');
    }
    const endOf = async (before: string): Promise<string | undefined> => {
      const silent = await boot();
      try {
        await silence(silent, before);
      } finally {
        expect(await silent.destroy()).toMatchObject({ removed: true, left: [] });
      }
      return (await silent.exited).detail;
    };

    it('and whose agent does not answer is ended by its keyboard, and leaves a clean disk', async () => {
      expect(await endOf(':')).toMatch(/^guest_reset; .*asked to stop.*scratch sealed/);
    });

    it('and whose pid 1 does not answer either is ended by its monitor', async () => {
      expect(await endOf('echo i8042 > /sys/bus/platform/drivers/i8042/unbind')).toMatch(/^stopped/);
    });
  });
});
