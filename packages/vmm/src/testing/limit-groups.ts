import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { wasOutOfMemory } from '../cgroup/vm-cgroup.ts';
import { VmGroups } from '../cgroup/vm-groups.ts';
import { vmLimits } from '../cgroup/vm-limits.ts';
import { vmCommand } from '../machine/vm-command.ts';
import { machineId } from '../processes/machine-id.ts';

const OWNER = { uid: 1000, gid: 1000 };
const LIMITS = vmLimits({ memoryMib: 20, cpus: 1, overheadMib: 10, ownTasks: 7 });

/** Starts a shell as a VMM is started; gives what it said and how it ended. */
async function run(group: string, script: string): Promise<{ said: string; code: number | null; signal: string | null }> {
  const { program, args, user } = await vmCommand('/bin/sh', ['-c', script], OWNER, undefined, group);
  const child = spawn(program, [...args], { ...user, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (said += part.toString()));
  return await new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      // What it left behind holds the pipes.
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ said, code, signal });
    });
  });
}

/**
 * Makes the group of a VM where the kernel has all of cgroup v2, as root, and starts shells in the place of its VMM: one that looks around, one
 * that takes too many threads, one that takes too much memory. Gives what was seen.
 */
export async function tryLimitGroups(): Promise<Readonly<Record<string, unknown>>> {
  const groups = new VmGroups({ required: true });
  const verdict = await groups.demand('vm-of-a-guest');
  const group = join(verdict.parent ?? '', machineId('marker', '00000001'));
  await groups.make(group, LIMITS, verdict.files);
  const values = Object.fromEntries(verdict.files.map((file) => [file, readFileSync(join(group, file), 'utf8').trim()]));

  const place = await run(group, 'cat /proc/self/cgroup; id -u; : > /dev/null');
  const rights = await run(group, `echo 1073741824 > ${group}/memory.max`);
  const threads = await run(group, 'for n in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; echo all of them');
  const alive = readFileSync(join(group, 'cgroup.procs'), 'utf8').trim().split('\n').length;
  const isEnded = await groups.remove(group);

  await groups.make(group, LIMITS, verdict.files);
  const memory = await run(group, 'exec dd if=/dev/zero of=/dev/null bs=100M count=1');
  const outOfMemory = wasOutOfMemory(group);
  const isRemoved = await groups.remove(group);

  return {
    verdict,
    values,
    place: place.said.replace(basename(group), 'GROUP'),
    rights: rights.code,
    threads: { code: threads.code, said: threads.said.split('\n')[0], alive },
    memory: { code: memory.code, signal: memory.signal, outOfMemory },
    removed: [isEnded, isRemoved, existsSync(group)],
  };
}
