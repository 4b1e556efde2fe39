import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { codeOf } from '@firecrew/base';
import { followExec, killExec, startExec, waitExec } from '../guest-client/execs.ts';
import { GuestRefusal } from '../guest-client/read-body.ts';
import { guestHealth } from '../guest-client/simple-requests.ts';
import { type BootedVm, type DriverCase, runs, shell, until, withVm } from './driver-rig.ts';

const guestCode = (code: string, without?: string) => (error: unknown) =>
  error instanceof GuestRefusal && error.guestCode === code && (without === undefined || !error.message.includes(without));

function execCase(name: string, run: (booted: BootedVm) => Promise<void>): DriverCase {
  return { name, needsIsolation: false, needsOwnVm: false, run: (rig) => withVm(rig, run) };
}

/** Commands: their end, their output, their processes. */
export const execCases: readonly DriverCase[] = [
  execCase('a booted guest answers health with both listeners up', async ({ vm }) => {
    const health = await guestHealth(await vm.session());
    assert.equal(health.proxy.up && health.model.up, true);
    assert.equal(health.execs, 0);
  }),
  execCase('an exec ends with its exit code and both outputs in the order they were written', async ({ vm }) => {
    const end = await shell(vm, 'echo one; echo two >&2; echo three; echo four > /dev/stderr; exit 7');
    assert.deepEqual([end.kind, end.exitCode, end.signal, end.survivors], ['exited', 7, null, 0]);
    assert.equal(end.output, 'one\ntwo\nthree\nfour\n');
  }),
  execCase('an exec killed by a signal has that signal and 128 more as its code', async ({ vm }) => {
    const end = await shell(vm, 'kill -9 $$');
    assert.deepEqual([end.kind, end.exitCode, end.signal], ['signalled', 137, 'SIGKILL']);
  }),
  execCase('an exec beyond its time limit is killed with what left its session, and keeps its output', async ({ vm }) => {
    const end = await shell(vm, 'echo before; setsid sleep 4711 & exec sleep 4712', { timeoutMs: 1000 });
    assert.deepEqual([end.kind, end.exitCode, end.output], ['timed_out', null, 'before\n']);
    assert.equal(await runs(vm, 'sleep 471'), false);
  }),
  execCase('a child left behind does not hold the exec and is killed and counted', async ({ vm }) => {
    const end = await shell(vm, 'setsid sleep 4713 & sleep 4714 & echo done');
    assert.deepEqual([end.kind, end.exitCode, end.output, end.survivors], ['exited', 0, 'done\n', 2]);
    assert.equal(await runs(vm, 'sleep 471'), false);
  }),
  execCase('output beyond the limit is dropped and counted, and the exec ends normally', async ({ vm }) => {
    const end = await shell(vm, 'head -c 3000000 /dev/zero | tr "\\0" x; head -c 3000000 /dev/zero >&2', { outputLimitBytes: 1000 });
    assert.deepEqual([end.exitCode, end.outputBytes, end.droppedBytes], [0, 1000, 5_999_000]);
    assert.equal(end.output, 'x'.repeat(1000));
  }),
  execCase('a large output written in the last moment arrives whole', async ({ vm }) => {
    const end = await shell(vm, 'head -c 10485760 /dev/zero | tr "\\0" y');
    assert.deepEqual([end.exitCode, end.outputBytes, end.output.length], [0, 10_485_760, 10_485_760]);
  }),
  execCase('follow goes on from an offset while the exec runs, and kill ends it', async ({ vm }) => {
    const session = await vm.session();
    const id = randomUUID();
    const argv = ['/bin/sh', '-c', 'printf 0123456789; exec sleep 4715'];
    await startExec(session, { id, argv, cwd: '/', timeoutMs: 60_000 });
    const followed = text(await followExec(session, id, 4));
    await until('the exec runs', () => runs(vm, 'sleep 4715'));
    await killExec(session, id, 'SIGTERM');
    const end = await waitExec(session, id, 60_000);
    assert.deepEqual([end.kind, end.signal, end.exitCode], ['signalled', 'SIGTERM', 143]);
    assert.equal(await followed, '456789');
  }),
  execCase('standard input is empty and the exec leads its own session', async ({ vm }) => {
    const end = await shell(
      vm,
      'cat; test "$(ps -o sid= -p $$ 2>/dev/null | tr -d " ")" = "$$" || test "$(cut -d" " -f6 /proc/$$/stat)" = "$$"; echo $?',
    );
    assert.equal(end.output, '0\n');
  }),
  execCase('a bad directory, program or variable refuses the exec and nothing runs', async ({ vm }) => {
    const session = await vm.session();
    const start = (over: { cwd?: string; argv?: string[]; env?: Record<string, string> }): Promise<void> =>
      startExec(session, { id: randomUUID(), argv: ['/bin/true'], cwd: '/', timeoutMs: 1000, ...over });
    await assert.rejects(start({ cwd: '/no/such/folder' }), guestCode('cwd_unusable'));
    await assert.rejects(start({ argv: ['/no/such/program'] }), guestCode('command_not_found'));
    await assert.rejects(start({ env: { TOKEN: 'se\0cret' } }), guestCode('environment_nul', 'cret'));
    await assert.rejects(start({ env: { 'A=B': 'secret' } }), guestCode('environment_bad_name', 'secret'));
    await assert.rejects(start({ env: { FIRECREW_EXEC: 'other' } }), guestCode('environment_reserved_name', 'other'));
    await assert.rejects(waitExec(session, 'never-started', 1000), guestCode('exec_unknown'));
    assert.equal((await guestHealth(session)).execs, 0);
  }),
  execCase('an exec id is used once', async ({ vm }) => {
    const session = await vm.session();
    const exec = { id: randomUUID(), argv: ['/bin/true'], cwd: '/', timeoutMs: 10_000 };
    await startExec(session, exec);
    await assert.rejects(startExec(session, exec), guestCode('exec_id_taken'));
    assert.equal((await waitExec(session, exec.id, 10_000)).exitCode, 0);
  }),
  execCase('a request of another generation is refused by name and ends nothing', async ({ vm }) => {
    const session = await vm.session();
    const stream = session.open({ t: 'levitate' });
    stream.end();
    const head = await stream.peerHead;
    assert.deepEqual(typeof head === 'object' && head !== null && 'code' in head ? head.code : undefined, 'unknown_message');
    assert.equal(codeOf(await guestHealth(session).catch((error: unknown) => error)), undefined);
  }),
];
