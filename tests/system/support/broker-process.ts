import { readFileSync } from 'node:fs';
import { descendants, isRunning } from './processes.ts';
import { until } from './until.ts';

/** Pid of the credential broker of a node agent, once it is there. */
export async function brokerPid(nodeAgent: number, other?: number): Promise<number> {
  return await until(
    'a credential broker',
    () => descendants(nodeAgent).find(({ pid, command }) => pid !== other && isBroker(command) && isRunning(pid))?.pid,
  );
}

/** Whether a command line is that of a broker: by its title. */
export function isBroker(command: string): boolean {
  return command.startsWith('firecrew-credential-broker');
}

/** What `/proc` says of the limit of core files, in bytes. */
export function coreLimit(pid: number): string {
  return /Max core file size +(\S+)/.exec(readFileSync(`/proc/${pid}/limits`, 'utf8'))?.[1] ?? '';
}
