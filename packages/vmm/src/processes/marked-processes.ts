import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf } from '@firecrew/base';
import { machineIdPrefix } from './machine-id.ts';

/** Variable that every process of an attempt carries. */
export const ATTEMPT_VARIABLE = 'FIRECREW_ATTEMPT';
/** Passes over `/proc` before a kill is given up. */
export const MAX_KILL_PASSES = 200;
/** Pause between two passes, in `ms`: a killed process takes a moment to go. */
export const KILL_PASS_PAUSE_MS = 10;

/** What a kill did. `left` are the processes that still carry the mark. */
export interface KillReport {
  readonly killed: readonly number[];
  readonly left: readonly number[];
}

/**
 * Ids of the live processes whose environment holds exactly `variable=marker`, but for this process. Of an attempt also those of its
 * jailed VMMs, whose environment is empty: their id on the command line is made of the mark.
 */
export function findMarked(marker: string, variable: string = ATTEMPT_VARIABLE): number[] {
  const wanted = Buffer.from(`\0${variable}=${marker}\0`);
  const machine = variable === ATTEMPT_VARIABLE ? Buffer.from(`\0--id\0${machineIdPrefix(marker)}`) : undefined;
  const found: number[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^[1-9][0-9]*$/.test(name)) continue;
    const pid = Number(name);
    if (pid !== process.pid && (holdsEntry(pid, wanted) || (machine !== undefined && isMachine(pid, machine)))) found.push(pid);
  }
  return found;
}

/**
 * Kills every process that carries the mark, pass after pass over `/proc`, until a pass finds none. A process that cleared its
 * environment is not found. `variable` is the name of the mark; this process is never killed.
 */
export async function killMarked(marker: string, options: { readonly variable?: string } = {}): Promise<KillReport> {
  const killed = new Set<number>();
  let left: number[] = [];
  for (let pass = 0; pass < MAX_KILL_PASSES; pass += 1) {
    left = findMarked(marker, options.variable);
    if (left.length === 0) break;
    for (const pid of left) if (signalProcess(pid, 'SIGKILL')) killed.add(pid);
    await delay(KILL_PASS_PAUSE_MS);
  }
  return { killed: [...killed], left };
}

/** Sends a signal to a process, or to a group when `pid` is negative; false when it is gone or not ours. */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (codeOf(error) === 'ESRCH' || codeOf(error) === 'EPERM') return false;
    throw error;
  }
}

function holdsEntry(pid: number, wanted: Buffer): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`);
    // The first entry has no NUL before it.
    return environment.includes(wanted) || environment.subarray(0, wanted.length - 1).equals(wanted.subarray(1));
  } catch {
    // Gone, or another user's: neither is ours to kill.
    return false;
  }
}

function isMachine(pid: number, wanted: Buffer): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`).includes(wanted);
  } catch {
    return false;
  }
}
