import { type ChildProcess, spawn } from 'node:child_process';
import { CodedError, messageOf } from '@firecrew/base';
import pg from 'pg';
import type { DatabaseUser } from './database-user.ts';
import { DATABASE_ROLE } from './ensure-cluster.ts';
import type { RunnableBinaries } from './install-binaries.ts';
import { READY_TIMEOUT_MS } from './limits.ts';
import { programEnvironment } from './run-program.ts';
import type { ServerLog } from './server-log.ts';
import { SOCKET_PORT } from './socket-folder.ts';
import { waitUntil } from './wait-until.ts';

/** How one server process is started. */
export interface LaunchOptions {
  readonly dataDir: string;
  readonly binaries: RunnableBinaries;
  readonly user: DatabaseUser | undefined;
  readonly socketDir: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly log: ServerLog;
}

/** How the server process ended. */
export interface PostgresExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A server process and the promise of its end. */
export interface LaunchedServer {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<PostgresExit>;
}

/** Sized for one control plane: 19-21 MB of memory, and a log of changes that stays below 256 MB. */
const SETTINGS: Readonly<Record<string, string>> = {
  shared_buffers: '16MB',
  max_connections: '30',
  jit: 'off',
  io_method: 'sync',
  max_wal_size: '256MB',
  // Files in the data directory: nothing is left in /dev/shm after a kill, and its 64 MB in a container are no limit.
  dynamic_shared_memory_type: 'mmap',
  password_encryption: 'scram-sha-256',
};

/** The command line of the server: a Unix socket alone, no address. Settings given later win. */
export function serverArguments(options: Pick<LaunchOptions, 'dataDir' | 'socketDir' | 'settings'>, packaged: boolean): string[] {
  const settings: Record<string, string> = { ...SETTINGS, ...options.settings };
  // Only PostgreSQL 18 and later know it; an operator's own server may be older.
  if (!packaged) delete settings.io_method;
  const all = {
    ...settings,
    listen_addresses: '',
    port: String(SOCKET_PORT),
    // A list, in which a comma separates and quotes protect.
    unix_socket_directories: `"${options.socketDir.replaceAll('"', '""')}"`,
  };
  return ['-D', options.dataDir, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
}

/** Starts the server as the leader of its own session, so that it outlives this process and no terminal signal reaches it. */
export async function launchServer(options: LaunchOptions): Promise<LaunchedServer> {
  const child = spawn(`${options.binaries.bin}/postgres`, serverArguments(options, options.binaries.libraries !== undefined), {
    cwd: '/',
    env: programEnvironment(options.binaries),
    detached: true,
    stdio: ['ignore', options.log.fd, options.log.fd],
    ...(options.user === undefined ? {} : { uid: options.user.uid, gid: options.user.gid }),
  });
  const exited = new Promise<PostgresExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  }).catch((cause: unknown) => {
    throw new CodedError('database_start_failed', `postgres could not be started: ${messageOf(cause)}`, { id: options.dataDir, cause });
  });
  child.unref();
  if (child.pid === undefined) throw new CodedError('database_start_failed', 'postgres has no pid', { id: options.dataDir });
  return { child, pid: child.pid, exited };
}

/** Why a server did not come up. */
export type StartFailure = 'exited' | 'timeout';

/** Waits until the server accepts a connection; a reason when it ended or took longer than `READY_TIMEOUT_MS`. */
export async function waitReady(server: LaunchedServer, socketDir: string, password: string): Promise<StartFailure | undefined> {
  let ended = false;
  void server.exited.then(() => {
    ended = true;
  });
  const ready = await waitUntil(async () => ended || (await accepts(socketDir, password)), READY_TIMEOUT_MS);
  if (ended) return 'exited';
  return ready ? undefined : 'timeout';
}

async function accepts(socketDir: string, password: string): Promise<boolean> {
  const client = new pg.Client({
    host: socketDir,
    port: SOCKET_PORT,
    user: DATABASE_ROLE,
    password,
    database: 'postgres',
    connectionTimeoutMillis: 5_000,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch (error) {
    // Anything else than "not there yet" and "the database system is starting up" will not pass by waiting.
    if (isTransient(error)) return false;
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
}

const NOT_YET: readonly string[] = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', '57P03'];

function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && typeof error.code === 'string') return NOT_YET.includes(error.code);
  return error.message.includes('timeout') || error.message.includes('terminated');
}
