import { readFile, statfs, writeFile } from 'node:fs/promises';

/** Killed last of all for want of memory: with the agent, the record of what happened would be lost. */
const SPARED = '-900';
/** What a process has that nobody spared or marked. */
const ORDINARY = '0';

/** Processes that the kernel has killed for want of memory since it started; undefined where it does not count them. */
export async function readMemoryKills(file = '/proc/vmstat'): Promise<number | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const count = /^oom_kill (\d{1,15})$/m.exec(text)?.[1];
  return count === undefined ? undefined : Number(count);
}

/** Room on the fullest of the file systems of these folders, in bytes, and 0 where one takes no further file; undefined where none can be asked. */
export async function readDiskRoom(folders: readonly string[]): Promise<number | undefined> {
  const rooms: number[] = [];
  for (const folder of folders) {
    const stats = await statfs(folder).catch(() => undefined);
    // Without blocks it is the kernel's own, or has no bound.
    if (stats === undefined || stats.blocks === 0) continue;
    // Some file systems have no fixed number of files, and say 0 of 0.
    rooms.push(stats.files > 0 && stats.ffree === 0 ? 0 : Math.min(stats.bavail * stats.bsize, Number.MAX_SAFE_INTEGER));
  }
  return rooms.length === 0 ? undefined : Math.min(...rooms);
}

/** Has the kernel kill this process last; without the right to it nothing changes. */
export async function spareSelf(): Promise<void> {
  await writeFile('/proc/self/oom_score_adj', SPARED).catch(() => undefined);
}

/** Takes from a command what it has inherited of {@link spareSelf}. */
export async function unspare(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/oom_score_adj`, ORDINARY).catch(() => undefined);
}
