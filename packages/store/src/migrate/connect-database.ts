import { CodedError, messageOf } from '@firecrew/base';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import pg from 'pg';
import { databaseFault } from '../missions/database-fault.ts';
import type { PostgresConnection } from '../postgres/start-postgres.ts';

/** How long a new connection may take. */
export const CONNECT_TIMEOUT_MS = 10_000;
/** A statement that runs longer is ended by the server. */
export const STATEMENT_TIMEOUT_MS = 60_000;
/** A transaction that does nothing for this long is ended, and its locks with it. */
export const IDLE_IN_TRANSACTION_TIMEOUT_MS = 60_000;
/** Connections of one process; the embedded server has 30 for all. */
export const POOL_MAX = 10;

/** What `connectDatabase` needs: a URL (the operator's server) or the connection of the embedded one. */
export interface ConnectOptions<S extends Record<string, unknown>> {
  readonly url?: string;
  readonly connection?: PostgresConnection;
  /** The drizzle schema, for relational queries. */
  readonly schema?: S;
  readonly poolMax?: number;
  /** Bounds connecting and each statement, at both ends, in ms; for a short look in place of the limits of a service. */
  readonly timeoutMs?: number;
  /** Told of errors of idle connections, which are replaced by themselves. */
  readonly onError?: (error: Error) => void;
}

/** A pool of connections and drizzle over it. */
export interface ConnectedDatabase<S extends Record<string, unknown>> {
  readonly db: NodePgDatabase<S>;
  readonly pool: pg.Pool;
  /** Waits for connections in use, then closes all. */
  close(): Promise<void>;
}

/**
 * Connects and asks the server for its version once. Throws `database_unreachable`, `disk_full`, `database_too_old` (before PostgreSQL 13)
 * or `database_url_invalid`. An idle connection that breaks is reported and replaced; it never ends the process.
 */
export async function connectDatabase<S extends Record<string, unknown> = Record<string, never>>(
  options: ConnectOptions<S>,
): Promise<ConnectedDatabase<S>> {
  const pool = new pg.Pool({
    ...target(options),
    max: options.poolMax ?? POOL_MAX,
    connectionTimeoutMillis: options.timeoutMs ?? CONNECT_TIMEOUT_MS,
    statement_timeout: options.timeoutMs ?? STATEMENT_TIMEOUT_MS,
    // A server that fell silent ends no statement.
    ...(options.timeoutMs === undefined ? {} : { query_timeout: options.timeoutMs }),
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    application_name: 'firecrew',
  });
  const onError = options.onError ?? ((): void => {});
  pool.on('error', onError);
  // The pool listens on idle connections alone: one that breaks in a caller's hands also emits, and the caller's query rejects.
  pool.on('connect', (client) => {
    client.on('error', () => {});
  });
  try {
    await assertVersion(pool);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const db = drizzle(pool, options.schema === undefined ? {} : { schema: options.schema });
  return { db, pool, close: () => pool.end() };
}

function target<S extends Record<string, unknown>>(options: ConnectOptions<S>): pg.PoolConfig {
  if (options.url === undefined) {
    if (options.connection === undefined) throw new CodedError('database_url_invalid', 'neither a URL nor a connection was given');
    return { ...options.connection };
  }
  if (!/^postgres(ql)?:\/\//.test(options.url)) {
    throw new CodedError('database_url_invalid', 'the database URL does not begin with postgres:// or postgresql://', {
      action: 'Set FIRECREW_DATABASE_URL to postgresql://USER:PASSWORD@HOST/NAME.',
    });
  }
  return { connectionString: options.url };
}

/** The oldest server whose SQL is used. */
const SERVER_VERSION_MIN = 130_000;

async function assertVersion(pool: pg.Pool): Promise<void> {
  const found = await pool.query<{ n: number }>(`select current_setting('server_version_num')::int as n`).catch((cause: unknown) => {
    if (databaseFault(cause) === 'disk_full') {
      throw new CodedError('disk_full', `the disk of the database is full: ${messageOf(cause)}`, {
        action: 'Free space there; the database goes on by itself.',
        cause,
      });
    }
    throw new CodedError('database_unreachable', `the database does not answer: ${messageOf(cause)}`, {
      action: 'Check that it runs, its address, and the role and password.',
      cause,
    });
  });
  const version = found.rows[0]?.n ?? 0;
  if (version >= SERVER_VERSION_MIN) return;
  throw new CodedError('database_too_old', `the database is PostgreSQL ${Math.floor(version / 10_000)}; 13 or newer is needed`);
}
