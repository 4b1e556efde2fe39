import { chmodSync, existsSync, mkdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { CodedError } from '@firecrew/base';
import pg from 'pg';
import { assertReachable, chooseDatabaseUser, type DatabaseUser } from './database-user.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import { DATABASE_ROLE, ensureCluster, passwordFile } from './ensure-cluster.ts';
import { installBinaries, type RunnableBinaries } from './install-binaries.ts';
import { type LaunchedServer, launchServer, type PostgresExit, waitReady } from './launch-server.ts';
import { ORPHAN_FAST_MS, SHARED_MEMORY_RETRY_MS, STOP_FAST_MS, STOP_IMMEDIATE_MS } from './limits.ts';
import { locateBinaries } from './locate-binaries.ts';
import { openServerLog, type ServerLog } from './server-log.ts';
import { endBackends, settleOrphan } from './settle-orphan.ts';
import { assertSocketFits, makeSocketFolder, removeSocketFolder, SOCKET_PORT, type SocketFolder } from './socket-folder.ts';

/** How to reach a database; the fields are those of the `pg` driver. */
export interface PostgresConnection {
  /** Folder of the Unix socket; the same over restarts of one data directory with one run folder. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** Where the supervisor tells what it did, one line each. */
export interface PostgresLogger {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** What `startPostgres` needs. */
export interface StartPostgresOptions {
  /** The data directory; made on the first start. Beside it lie `.password`, `.log` and `.support`. */
  readonly dataDir: string;
  /** Folder for the socket, short: its path and 39 bytes more must fit into 107. */
  readonly runDir: string;
  /** Folder with `initdb` and `postgres`; without it `FIRECREW_PG_BIN`, then the packaged ones. */
  readonly binDir?: string;
  /** Where links to libraries and, for root, a copy of the programs go; by default `<dataDir>.support`. */
  readonly supportDir?: string;
  /** More server settings. `fsync: 'off'` is for tests: a crash of the machine then loses the database. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly logger?: PostgresLogger;
}

/** A running server of our own. It outlives this process; the next start stops it and starts anew. */
export interface RunningPostgres {
  readonly pid: number;
  readonly connection: PostgresConnection;
  /** The same as one URL; holds the password. */
  readonly url: string;
  /** Resolves when the server has ended for whatever reason, its lock and socket folder are gone, and it may be started again. */
  readonly exited: Promise<PostgresExit>;
  /** Fast shutdown (immediate after 10 s); resolves when no process is left. Safe to call twice. */
  stop(): Promise<void>;
}

/** The database that Firecrew uses in its own server. */
const DATABASE_NAME = 'firecrew';

const SILENT: PostgresLogger = { info: () => {}, warn: () => {} };

interface Prepared {
  readonly dataDir: string;
  readonly user: DatabaseUser | undefined;
  readonly logger: PostgresLogger;
  readonly options: StartPostgresOptions;
}

/**
 * Starts the embedded PostgreSQL of `dataDir`, under a lock so that two supervisors never meet, and waits until it answers.
 * Throws the codes of its parts (`directory_locked`, `database_version_mismatch`, `socket_path_too_long`, ...) or `database_start_failed`
 * with the end of the server's log.
 */
export async function startPostgres(options: StartPostgresOptions): Promise<RunningPostgres> {
  assertSocketFits(resolve(options.runDir));
  const user = chooseDatabaseUser(process.getuid?.() ?? -1);
  const parent = dirname(resolve(options.dataDir));
  if (!existsSync(parent)) makeParent(parent, user);
  // The server reports its working directory with every link resolved.
  const dataDir = join(realpathSync(parent), basename(resolve(options.dataDir)));
  if (user !== undefined) assertReachable(dirname(dataDir), user);
  const lock = await lockDirectory(dataDir);
  try {
    return await startLocked({ dataDir, user, logger: options.logger ?? SILENT, options }, lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function makeParent(parent: string, user: DatabaseUser | undefined): void {
  mkdirSync(parent, { recursive: true, mode: user === undefined ? 0o700 : 0o711 });
  // The process's file mode mask may have taken away the right to walk through.
  if (user !== undefined) chmodSync(parent, 0o711);
}

async function startLocked(prepared: Prepared, lock: DirectoryLock): Promise<RunningPostgres> {
  const { dataDir, user, logger, options } = prepared;
  const binDir = options.binDir ?? (process.env.FIRECREW_PG_BIN || undefined);
  const binaries = await installBinaries(locateBinaries(binDir), options.supportDir ?? `${dataDir}.support`, user !== undefined);
  if (user !== undefined) assertReachable(binaries.bin, user);
  const finding = await settleOrphan(dataDir);
  if (finding !== 'nothing') logger.warn({ dataDir, finding }, 'an earlier server was settled');
  const durable = options.settings?.fsync !== 'off';
  const password = await ensureCluster({ dataDir, binaries, user, durable });
  const sockets = await makeSocketFolder(resolve(options.runDir), dataDir, user);
  const log = openServerLog(`${dataDir}.log`);
  try {
    if (user !== undefined) assertReachable(sockets.path, user);
    const server = await launchUntilReady(prepared, binaries, sockets.path, password, log);
    const connection = { host: sockets.link, port: SOCKET_PORT, user: DATABASE_ROLE, password, database: DATABASE_NAME };
    const exited = server.exited.then(async (exit) => {
      await settleAfterExit(dataDir, sockets, lock, logger);
      logger.info({ dataDir, pid: server.pid, ...exit }, 'PostgreSQL ended');
      return exit;
    });
    const running = handle(server, connection, exited);
    await ensureDatabase(connection).catch(async (error: unknown) => {
      await running.stop();
      throw error;
    });
    logger.info({ dataDir, pid: server.pid, socketDir: sockets.path }, 'PostgreSQL is ready');
    return running;
  } catch (error) {
    await removeSocketFolder(sockets);
    throw error;
  } finally {
    log.close();
  }
}

async function launchUntilReady(
  { dataDir, user, logger, options }: Prepared,
  binaries: RunnableBinaries,
  socketDir: string,
  password: string,
  log: ServerLog,
): Promise<LaunchedServer> {
  const end = performance.now() + SHARED_MEMORY_RETRY_MS;
  for (;;) {
    const server = await launchServer({ dataDir, binaries, user, socketDir, settings: options.settings ?? {}, log });
    const failure = await waitReady(server, socketDir, password).catch(async (cause: unknown) => {
      await stopServer(server);
      throw new CodedError('database_start_failed', `PostgreSQL of ${dataDir} refuses its own role`, {
        id: dataDir,
        action: `Restore ${passwordFile(dataDir)} from the backup that the folder is of.`,
        cause,
      });
    });
    if (failure === undefined) return server;
    if (failure === 'timeout') await stopServer(server);
    const said = log.tail();
    if (failure === 'exited' && said.includes('pre-existing shared memory block') && performance.now() < end) {
      logger.warn({ dataDir }, 'the shared memory of a killed server is still in use; trying again');
      await endBackends(dataDir, { fastMs: ORPHAN_FAST_MS, immediateMs: STOP_IMMEDIATE_MS });
      continue;
    }
    throw new CodedError('database_start_failed', `PostgreSQL of ${dataDir} did not start (${failure}): ${said.trim()}`, {
      id: dataDir,
      action: `Read ${log.path}.`,
    });
  }
}

async function settleAfterExit(dataDir: string, sockets: SocketFolder, lock: DirectoryLock, logger: PostgresLogger): Promise<void> {
  try {
    await endBackends(dataDir, { fastMs: ORPHAN_FAST_MS, immediateMs: STOP_IMMEDIATE_MS });
    await removeSocketFolder(sockets);
  } catch (error) {
    logger.warn({ dataDir, err: error }, 'something of an ended server is left');
  } finally {
    await lock.release();
  }
}

function handle(server: LaunchedServer, connection: PostgresConnection, exited: Promise<PostgresExit>): RunningPostgres {
  return {
    pid: server.pid,
    connection,
    url: connectionUrl(connection),
    exited,
    stop: async () => {
      await stopServer(server);
      await exited;
    },
  };
}

/** A connection as one URL that the `pg` driver, psql and others read. */
export function connectionUrl(connection: PostgresConnection): string {
  const { user, password, database, host, port } = connection;
  const part = encodeURIComponent;
  return `postgresql://${part(user)}:${part(password)}@/${part(database)}?host=${part(host)}&port=${port}`;
}

async function stopServer(server: LaunchedServer): Promise<void> {
  const { child, exited } = server;
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  const steps: readonly (readonly [NodeJS.Signals, number])[] = [
    ['SIGINT', STOP_FAST_MS],
    ['SIGQUIT', STOP_IMMEDIATE_MS],
  ];
  for (const [signal, ms] of steps) {
    if (!running()) return;
    child.kill(signal);
    if (await settlesWithin(exited, ms)) return;
  }
  if (running()) child.kill('SIGKILL');
  await exited;
}

async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<boolean>((done) => {
    timer = setTimeout(() => done(false), ms);
  });
  const settled = await Promise.race([promise.then(() => true), timeout]);
  clearTimeout(timer);
  return settled;
}

async function ensureDatabase(connection: PostgresConnection): Promise<void> {
  const client = new pg.Client({ ...connection, database: 'postgres' });
  client.on('error', () => {});
  await client.connect();
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [connection.database]);
    if (found.rowCount === 0) await client.query(`create database ${client.escapeIdentifier(connection.database)}`);
  } finally {
    await client.end();
  }
}
