import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { connectionUrl, type PostgresConnection, startPostgres } from '../postgres/start-postgres.ts';

/** One database of a test, empty or as `prepare` left it. */
export interface TestDatabase {
  readonly connection: PostgresConnection;
  readonly url: string;
  /** Ends all its connections and removes it. */
  drop(): Promise<void>;
}

/** A server for tests. */
export interface TestDatabaseServer {
  /** The server's own database, for tests that need no fresh one. */
  readonly connection: PostgresConnection;
  /** A copy of the prepared template, 20-50 ms. */
  createDatabase(): Promise<TestDatabase>;
  /** Ends the server and removes all its files. */
  stop(): Promise<void>;
}

/** What `startTestDatabase` needs. */
export interface TestDatabaseOptions {
  /** Runs once on the template (migrations, fixtures); every database of the test is a copy. It must close its connections. */
  readonly prepare?: (connection: PostgresConnection) => Promise<void>;
}

/** Holds the connection (JSON) of a server that all test files of a run share; set by whoever starts it, before the files run. */
export const SHARED_TEST_DATABASE = 'FIRECREW_TEST_DATABASE';

/**
 * Starts a PostgreSQL of its own below the temporary folder, without flushing to the disk, or uses the one that
 * `FIRECREW_TEST_DATABASE` names. It works as root and as any user, and when this process is killed, a watcher ends the server and
 * removes the files.
 */
export async function startTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabaseServer> {
  const shared = process.env[SHARED_TEST_DATABASE];
  const { connection, stop } = shared === undefined ? await startOwn() : { connection: parseShared(shared), stop: async () => {} };
  const template = `test_template_${randomBytes(6).toString('hex')}`;
  const made = new Set([template]);
  const drop = async (database: string): Promise<void> => {
    await administer(connection, `drop database if exists ${database} with (force)`);
    made.delete(database);
  };
  const createDatabase = async (): Promise<TestDatabase> => {
    const database = `test_${randomBytes(6).toString('hex')}`;
    await administer(connection, `create database ${database} template ${template}`);
    made.add(database);
    const own = { ...connection, database };
    return { connection: own, url: connectionUrl(own), drop: () => drop(database) };
  };
  const end = async (): Promise<void> => {
    // A server of our own goes as a whole.
    if (shared !== undefined) for (const database of made) await drop(database);
    await stop();
  };
  try {
    await administer(connection, `create database ${template}`);
    await options.prepare?.({ ...connection, database: template });
  } catch (error) {
    await end();
    throw error;
  }
  return { connection, createDatabase, stop: end };
}

function parseShared(text: string): PostgresConnection {
  const value: unknown = JSON.parse(text);
  const valid = typeof value === 'object' && value !== null && 'host' in value && 'port' in value && 'user' in value && 'password' in value;
  if (!valid) throw new Error(`${SHARED_TEST_DATABASE} is not a connection`);
  return {
    host: String(value.host),
    port: Number(value.port),
    user: String(value.user),
    password: String(value.password),
    database: 'postgres',
  };
}

async function startOwn(): Promise<{ readonly connection: PostgresConnection; readonly stop: () => Promise<void> }> {
  const home = await mkdtemp(join(tmpdir(), 'fc-db-'));
  // Started by root, the server runs as another account, which must walk through.
  await chmod(home, 0o711);
  const removeHome = (): Promise<void> => rm(home, { recursive: true, force: true });
  const settings = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off', max_connections: '100' };
  const server = await startPostgres({ dataDir: join(home, 'data'), runDir: join(home, 'run'), settings }).catch(async (error: unknown) => {
    await removeHome();
    throw error;
  });
  const watcher = startWatcher(server.pid, home);
  const stop = async (): Promise<void> => {
    await server.stop();
    await removeHome();
    watcher.kill('SIGKILL');
  };
  return { connection: server.connection, stop };
}

/** A shell whose input ends when this process does: it then ends the server, which was made to outlive us, and removes the files. */
function startWatcher(pid: number, home: string): ChildProcess {
  const script = [
    'cat >/dev/null',
    'if [ "$(readlink /proc/$1/cwd)" = "$2/data" ]; then kill -QUIT $1; fi',
    'while [ "$(readlink /proc/$1/cwd)" = "$2/data" ]; do sleep 0.05; done',
    'rm -rf -- "$2"',
  ].join('\n');
  const watcher = spawn('/bin/sh', ['-c', script, 'firecrew-test-watcher', String(pid), home], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.unref();
  return watcher;
}

async function administer(server: PostgresConnection, statement: string): Promise<void> {
  const client = new pg.Client({ ...server, database: 'postgres' });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
