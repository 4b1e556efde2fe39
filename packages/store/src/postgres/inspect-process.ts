import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What `/proc` says about one process: its name (at most 15 bytes) and its state letter. */
export interface ProcessStatus {
  readonly name: string;
  readonly state: string;
}

/** Name and state of a process, or undefined when there is none of that pid. */
export function readProcessStatus(pid: number): ProcessStatus | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The name in parentheses may itself hold spaces and parentheses: the fields begin after the last one.
  const end = text.lastIndexOf(')');
  const state = text.slice(end + 2).split(' ', 1)[0];
  return state === undefined ? undefined : { name: text.slice(text.indexOf('(') + 1, end), state };
}

/** Whether a process runs: it exists and is neither a zombie nor being removed. */
export function isRunning(pid: number): boolean {
  const status = readProcessStatus(pid);
  return status !== undefined && status.state !== 'Z' && status.state !== 'X';
}

/**
 * Whether a process of that pid is a running part of the server of `dataDir` (a resolved path), or makes it: by its name, and by its working
 * directory, which every server process keeps in its data directory. A shell that stands there is none.
 */
export function servesDirectory(pid: number, dataDir: string): boolean {
  const name = readProcessStatus(pid)?.name ?? '';
  if (!isRunning(pid) || !(name.includes('postgres') || name.includes('initdb'))) return false;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === dataDir;
  } catch {
    return false;
  }
}

/** The pids of all processes of the server of `dataDir` (a resolved path) that this account may look at. */
export function serverProcesses(dataDir: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^[1-9][0-9]*$/.test(name))
    .map(Number)
    .filter((pid) => servesDirectory(pid, dataDir));
}

/** Sends a signal; false when the process is already gone. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}
