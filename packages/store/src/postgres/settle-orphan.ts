import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { sendSignal, serverProcesses, servesDirectory } from './inspect-process.ts';
import { ORPHAN_FAST_MS, STOP_IMMEDIATE_MS } from './limits.ts';
import { waitUntil } from './wait-until.ts';

/** What was found of an earlier server in a data directory. */
export type OrphanFinding = 'nothing' | 'stale_pid_file' | 'stopped_orphan';

/** How long each step may take, in ms. */
export interface OrphanTimes {
  readonly fastMs: number;
  readonly immediateMs: number;
}

/** The pid on the first line of a `postmaster.pid`, or undefined where there is none. */
export function parsePostmasterPid(text: string): number | undefined {
  const first = text.split('\n', 1)[0]?.trim() ?? '';
  // A server in single-user mode writes its pid negated.
  return /^-?[1-9][0-9]{0,9}$/.test(first) ? Math.abs(Number(first)) : undefined;
}

/**
 * Makes sure that no process uses `dataDir` (a resolved path) and that no pid file of a dead server is left. To be called only under
 * the directory's lock. A pid is believed only while that process is a server that works in the data directory: zombies and
 * reused pids are stale. A living orphan gets a fast shutdown, then an immediate one; backends that a killed server
 * left behind are waited for, then killed. Throws `database_orphan_alive` when one survives all that.
 */
export async function settleOrphan(
  dataDir: string,
  times: OrphanTimes = { fastMs: ORPHAN_FAST_MS, immediateMs: STOP_IMMEDIATE_MS },
): Promise<OrphanFinding> {
  const pidFile = join(dataDir, 'postmaster.pid');
  const pid = existsSync(pidFile) ? parsePostmasterPid(readFileSync(pidFile, 'latin1')) : undefined;
  const alive = pid !== undefined && servesDirectory(pid, dataDir);
  if (alive) await stopOrphan(pid, dataDir, times);
  await endBackends(dataDir, times);
  const stale = existsSync(pidFile);
  rmSync(pidFile, { force: true });
  if (alive) return 'stopped_orphan';
  return stale ? 'stale_pid_file' : 'nothing';
}

async function stopOrphan(pid: number, dataDir: string, times: OrphanTimes): Promise<void> {
  const gone = (): boolean => !servesDirectory(pid, dataDir);
  sendSignal(pid, 'SIGINT');
  if (await waitUntil(gone, times.fastMs)) return;
  sendSignal(pid, 'SIGQUIT');
  if (await waitUntil(gone, times.immediateMs)) return;
  sendSignal(pid, 'SIGKILL');
  if (await waitUntil(gone, times.immediateMs)) return;
  throw new CodedError('database_orphan_alive', `PostgreSQL process ${pid} of ${dataDir} does not end`, {
    id: dataDir,
    action: `Find out why process ${pid} cannot be killed (a hung disk?), then start again.`,
  });
}

/** Backends notice by themselves that their server is gone, unless they are deep in a query: those are killed. */
export async function endBackends(dataDir: string, times: OrphanTimes): Promise<void> {
  const gone = (): boolean => serverProcesses(dataDir).length === 0;
  if (await waitUntil(gone, times.fastMs)) return;
  for (const pid of serverProcesses(dataDir)) sendSignal(pid, 'SIGKILL');
  if (await waitUntil(gone, times.immediateMs)) return;
  throw new CodedError('database_orphan_alive', `processes ${serverProcesses(dataDir).join(', ')} still use ${dataDir}`, {
    id: dataDir,
    action: 'Stop them, then start again.',
  });
}
