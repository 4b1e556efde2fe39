import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

/** Resident memory of a process in MiB; 0 when it is gone. */
export function residentMib(pid: number | 'self'): number {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kib ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Watches how far the memory of a process grows. */
export function watchGrowth(pid: number | 'self'): { stop: () => number } {
  const start = residentMib(pid);
  let peak = start;
  const look = () => {
    peak = Math.max(peak, residentMib(pid));
  };
  const timer = setInterval(look, 20);
  return {
    stop: () => {
      look();
      clearInterval(timer);
      return peak - start;
    },
  };
}

/** Runs a command to its end; throws when it fails. */
export async function run(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (part) => {
    said += part;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${said.slice(0, 500)}`);
}

/** A process of the bench that has said what it has to say when it is ready. */
export interface Helper {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ready: Record<string, unknown>;
  /** Its next message. */
  next(): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
}

/** Starts a file of this folder as a process and waits for its first message. */
export async function startHelper(file: URL, args: readonly string[]): Promise<Helper> {
  const child = fork(file, args);
  const next = async () => {
    const [message] = await once(child, 'message', { signal: AbortSignal.timeout(60_000) });
    return message as Record<string, unknown>;
  };
  const ready = await next();
  return {
    child,
    pid: child.pid ?? 0,
    ready,
    next,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
