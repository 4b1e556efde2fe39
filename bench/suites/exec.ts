import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { startExec, type Vm, waitExec } from '@firecrew/vmm';
import { type BenchRow, measured, notMeasured } from '../support/row.ts';
import { memoryFolder, withSandbox } from '../support/sandbox.ts';
import { startSshd } from '../support/sshd.ts';
import { median, timed } from '../support/timing.ts';

const TIMES = 80;
const WARM_UP = 10;

async function execOnce(vm: Vm): Promise<void> {
  const session = await vm.session();
  const id = randomUUID();
  await startExec(session, { id, argv: ['/bin/true'], cwd: '/', timeoutMs: 10_000 });
  await waitExec(session, id, 10_000);
}

async function spawnOnce(command: string, args: readonly string[]): Promise<void> {
  const [code] = await once(spawn(command, args, { stdio: 'ignore' }), 'exit');
  if (code !== 0) throw new Error(`${command} ended with ${code}`);
}

async function medianOf(times: number, run: () => Promise<void>): Promise<number> {
  const all: number[] = [];
  for (let index = 0; index < times + WARM_UP; index += 1) all.push(await timed(run));
  return median(all.slice(WARM_UP));
}

/** `/bin/true` in a running sandbox, from the host and back, against a local process and a login by ssh. */
export async function execSuite(): Promise<BenchRow[]> {
  const folder = await memoryFolder();
  const ssh = await startSshd(folder.path);
  try {
    return await withSandbox(folder.path, async (vm) => {
      const [ours, local] = [await medianOf(TIMES, () => execOnce(vm)), await medianOf(TIMES, () => spawnOnce('/bin/true', []))];
      const note = (peer: string, ms: number) => `median ${ours.toFixed(2)} ms; ${peer} ${ms.toFixed(2)} ms`;
      const rows = [measured('exec: time of a local spawn', ours / local, 'x', { atMost: 4 }, note('spawn', local))];
      if (!ssh.ok) return [...rows, notMeasured('exec: time of ssh localhost', 'x', ssh.why)];
      const remote = await medianOf(20, () => spawnOnce('ssh', [...ssh.args, '/bin/true']));
      return [...rows, measured('exec: time of ssh localhost', ours / remote, 'x', { atMost: 0.3 }, note('ssh', remote))];
    });
  } finally {
    if (ssh.ok) await ssh.stop();
    await folder.remove();
  }
}
