import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What `/proc` says about one process: `startTicks` (since boot) tells it from a later one of the same pid. */
export interface ProcessStatus {
  readonly state: string;
  readonly startTicks: number;
}

/** The state letter and start time of a process, or undefined when there is none of that pid. */
export function readProcessStatus(pid: number): ProcessStatus | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The name in parentheses may itself hold spaces and parentheses: the fields begin after the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const state = fields[0];
  const ticks = Number(fields[19]);
  if (state === undefined || !Number.isFinite(ticks)) return undefined;
  return { state, startTicks: ticks };
}

/** Whether a process runs: it exists and is neither a zombie nor being removed. */
export function isRunning(pid: number): boolean {
  const status = readProcessStatus(pid);
  return status !== undefined && status.state !== 'Z' && status.state !== 'X';
}

/** Whether a running process of that pid has `directory` (a resolved path) as its working directory. */
export function worksIn(pid: number, directory: string): boolean {
  if (!isRunning(pid)) return false;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === directory;
  } catch {
    return false;
  }
}

/** The pids of all running processes we may look at whose working directory is `directory` (a resolved path). */
export function processesIn(directory: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^[1-9][0-9]*$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && worksIn(pid, directory));
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
