import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { ATTEMPT_VARIABLE, findMarked } from '@firecrew/vmm';

/** What `/proc` says about a process. */
export interface SeenProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Every live process that belongs to `folder`: by its command line, its working directory or its program. */
export function processesOf(folder: string): SeenProcess[] {
  return allProcesses().filter(
    ({ pid, command }) =>
      pid !== process.pid && (command.includes(folder) || [`cwd`, `exe`].some((name) => linkOf(pid, name).startsWith(folder))),
  );
}

/** The live processes of an attempt, by the mark in their environment. */
export function processesOfAttempt(marker: string): SeenProcess[] {
  const marked = new Set(findMarked(marker, ATTEMPT_VARIABLE));
  return allProcesses().filter(({ pid }) => marked.has(pid));
}

/** All processes below `pid`, children first. */
export function descendants(pid: number): SeenProcess[] {
  const all = allProcesses();
  const below = (parent: number): SeenProcess[] =>
    all.filter((item) => item.parent === parent).flatMap((item) => [...below(item.pid), item]);
  return below(pid);
}

/** Sends a signal to one process; false when it is gone. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Whether a process runs: neither gone nor a zombie. */
export function isRunning(pid: number): boolean {
  return statOf(pid) !== undefined;
}

/** Lines of a `/proc` file that name `folder`: sockets of `/proc/net/unix`, mounts of `/proc/self/mountinfo`. */
export function linesNaming(file: '/proc/net/unix' | '/proc/self/mountinfo', folder: string): string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.includes(folder));
}

function allProcesses(): SeenProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^[1-9][0-9]*$/.test(name))
    .flatMap((name) => {
      const pid = Number(name);
      const parent = statOf(pid);
      return parent === undefined ? [] : [{ pid, parent, command: commandOf(pid) }];
    });
}

/** Parent of a live process. */
function statOf(pid: number): number | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, parent] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? undefined : Number(parent);
  } catch {
    return undefined;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

function linkOf(pid: number, name: string): string {
  try {
    return readlinkSync(`/proc/${pid}/${name}`);
  } catch {
    return '';
  }
}
