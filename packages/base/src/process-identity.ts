import { readFileSync } from 'node:fs';

/** A process by what is never reused together: its pid, its start time, and the boot of the machine. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of `/proc/PID/stat`, in clock ticks since the boot. */
  readonly startTicks: string;
  readonly bootId: string;
}

/** Id of this boot of the machine. */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
}

/** The identity of a running process, or undefined when it is gone or a zombie. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const fields = readStat(pid);
  const state = fields?.[0];
  const startTicks = fields?.[19];
  if (state === undefined || startTicks === undefined || state === 'Z' || state === 'X') return undefined;
  return { pid, startTicks, bootId: readBootId() };
}

/** Whether the very process of `identity` still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  const now = identifyProcess(identity.pid);
  return now !== undefined && now.startTicks === identity.startTicks && now.bootId === identity.bootId;
}

/** Sends `signal` to the very process of `identity`; false when it is gone. The check comes right before the call, so that a reused pid is spared. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    return process.kill(identity.pid, signal);
  } catch {
    return false;
  }
}

function readStat(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name in parentheses may hold spaces and parentheses itself: the fields begin after the last one.
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}
