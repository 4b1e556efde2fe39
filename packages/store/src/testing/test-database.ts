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

/**
 * Starts a PostgreSQL of its own below the temporary folder, without flushing to the disk. It works as root and as any user, and when this
 * process is killed, a watcher ends the server and removes the files.
 */
export async function startTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabaseServer> {
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
  try {
    const template = { ...server.connection, database: 'test_template' };
    await administer(server.connection, 'create database test_template');
    await options.prepare?.(template);
    return { connection: server.connection, createDatabase: () => createDatabase(server.connection), stop };
  } catch (error) {
    await stop();
    throw error;
  }
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

async function createDatabase(server: PostgresConnection): Promise<TestDatabase> {
  const database = `test_${randomBytes(6).toString('hex')}`;
  await administer(server, `create database ${database} template test_template`);
  const connection = { ...server, database };
  return {
    connection,
    url: connectionUrl(connection),
    drop: () => administer(server, `drop database if exists ${database} with (force)`),
  };
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
