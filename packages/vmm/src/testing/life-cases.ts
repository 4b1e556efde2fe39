import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { followAcrossSessions, runExec } from '../guest-client/across-sessions.ts';
import { followExec, startExec, waitExec } from '../guest-client/execs.ts';
import type { Vm } from '../port/driver.ts';
import { killMarked } from '../processes/marked-processes.ts';
import { type DriverCase, type DriverRig, runs, shell, until, withVm } from './driver-rig.ts';

/** Whether the guest has started an exec; asked over sessions that are being cut. */
async function isKnown(vm: Vm, id: string): Promise<boolean> {
  try {
    (await followExec(await vm.session(), id, 0)).destroy();
    return true;
  } catch {
    return false;
  }
}

function lifeCase(name: string, run: (rig: DriverRig) => Promise<void>): DriverCase {
  return { name, needsIsolation: false, needsOwnVm: true, run };
}

/** From boot to destroy, and what can happen to the link between. */
export const lifeCases: readonly DriverCase[] = [
  lifeCase('an exec goes on while the link is lost, and is waited for and followed over the next session', (rig) =>
    withVm(rig, async ({ vm }) => {
      const first = await vm.session();
      const { workspace } = vm.guestPaths;
      const id = randomUUID();
      const command = 'printf before; until test -e go; do sleep 0.02; done; printf after';
      await startExec(first, { id, argv: ['/bin/sh', '-c', command], cwd: workspace, timeoutMs: 30_000 });
      const waited = waitExec(first, id, 30_000);
      waited.catch(() => undefined);
      await first.close();
      await assert.rejects(waited, { code: 'link_closed' });
      const second = await vm.session();
      assert.notEqual(second.epoch, first.epoch);
      await shell(vm, 'touch go');
      assert.equal((await waitExec(second, id, 30_000)).exitCode, 0);
      assert.equal(await text(await followExec(second, id, 6)), 'after');
    }),
  ),
  lifeCase('a run and its output, over sessions that are lost again and again, are whole', (rig) =>
    withVm(rig, async ({ vm }) => {
      const command = 'i=0; while [ $i -lt 60 ]; do echo line $i; i=$((i+1)); sleep 0.02; done; exit 3';
      const exec = { id: randomUUID(), argv: ['/bin/sh', '-c', command], cwd: '/', timeoutMs: 60_000 };
      const ended = runExec(vm, exec);
      ended.catch(() => undefined);
      let isOver = false;
      const cuts = (async () => {
        for (; !isOver; await delay(rig.cutEveryMs ?? 150)) await (await vm.session()).close();
      })();
      try {
        await until('it was started', () => isKnown(vm, exec.id));
        const parts: Buffer[] = [];
        for await (const part of followAcrossSessions(vm, exec.id)) parts.push(part);
        assert.equal(Buffer.concat(parts).toString(), Array.from({ length: 60 }, (_, at) => `line ${at}\n`).join(''));
        assert.equal((await ended).exitCode, 3);
      } finally {
        isOver = true;
        await cuts;
      }
    }),
  ),
  lifeCase('destroy ends a guest whose command left its session and holds on, and leaves nothing', async (rig) => {
    let folder = '';
    await withVm(rig, async ({ vm, spec }) => {
      folder = spec.folder;
      const argv = ['/bin/sh', '-c', 'trap "" TERM HUP INT; setsid sh -c "trap \\"\\" TERM; sleep 4716" & chmod 0 . ; sleep 4717'];
      await startExec(await vm.session(), { id: 'stubborn', argv, cwd: vm.guestPaths.workspace, timeoutMs: 60_000 });
      await until('both run', async () => (await runs(vm, 'sleep 4716')) && (await runs(vm, 'sleep 4717')));
      await vm.destroy();
      assert.deepEqual(await vm.pids(), []);
      await vm.exited;
      await assert.rejects(vm.session(), (error: unknown) => error instanceof Error && 'code' in error && /^vm_/.test(String(error.code)));
    });
    assert.equal(existsSync(folder), false);
  }),
  lifeCase('destroy removes folders that are closed or deeper than a path can be', (rig) =>
    withVm(rig, async ({ vm }) => {
      const deep = `node -e 'const fs = require("node:fs"), name = "d".repeat(200);
        for (let n = 0; n < 60; n += 1) { fs.mkdirSync(name); process.chdir(name); }'`;
      assert.equal((await shell(vm, `${deep} && cd "$HOME" && mkdir -p a/b && touch a/b/c && chmod 0 a/b a`)).exitCode, 0);
    }),
  ),
  lifeCase('all processes of an attempt are found by its mark and killed', (rig) =>
    withVm(rig, async ({ vm, spec }) => {
      const argv = ['/bin/sh', '-c', 'setsid sleep 4718 & exec sleep 4719'];
      await startExec(await vm.session(), { id: 'marked', argv, cwd: '/', timeoutMs: 60_000 });
      await until('it runs', () => runs(vm, 'sleep 4719'));
      const report = await killMarked(spec.attemptMarker);
      assert.ok(report.killed.length >= 1, String(report.killed.length));
      assert.deepEqual([report.left, await vm.pids()], [[], []]);
      await vm.exited;
    }),
  ),
  lifeCase('a destroyed guest stays destroyed, and destroying it again says the same', (rig) =>
    withVm(rig, async ({ vm }) => {
      assert.deepEqual(await vm.destroy(), await vm.destroy());
    }),
  ),
  lifeCase('a guest that cannot come up fails the boot with what it said, and leaves nothing', async (rig) => {
    const { driver, spec } = await rig.broken();
    await assert.rejects(driver.boot(spec), { code: 'boot_failed' });
    assert.equal(existsSync(spec.folder), false);
    const tooLong = { ...spec, folder: `${spec.folder}/${'x'.repeat(100)}` };
    await assert.rejects(rig.driver.boot(tooLong), { code: 'socket_path_too_long' });
    assert.equal(existsSync(tooLong.folder), false);
  }),
];
