import { CodedError, messageOf } from '@firecrew/base';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import type pg from 'pg';
import { type KnownMigration, type MigrationRefusal, planMigrations } from './plan-migrations.ts';

/** Key of the advisory lock under which one process at a time migrates ("FCMG" in ASCII). */
export const MIGRATION_LOCK_KEY = 0x46434d47;
/** How long another process's migration is waited for. */
export const MIGRATION_LOCK_TIMEOUT_MS = 120_000;

/** What `migrateDatabase` needs. `folder` is in the form that drizzle-kit writes. */
export interface MigrateOptions {
  readonly pool: pg.Pool;
  readonly folder: string;
}

/** How many migrations this call applied. */
export interface MigrateResult {
  readonly applied: number;
}

/**
 * Brings the database to the state of the code, all or nothing, one process at a time. Throws `database_newer`, `migration_changed`,
 * `migration_out_of_order`, `migrations_unreadable`, `migration_failed` or `migration_lock_timeout`.
 */
export async function migrateDatabase({ pool, folder }: MigrateOptions): Promise<MigrateResult> {
  const known = readKnown(folder);
  const client = await pool.connect();
  let broken = true;
  try {
    // A session of its own: both timeouts of the pool are meant for requests.
    await client.query(`set statement_timeout = 0; set lock_timeout = ${MIGRATION_LOCK_TIMEOUT_MS}`);
    await takeLock(client);
    const plan = planMigrations(known, await readApplied(client));
    if (plan.verdict === 'refuse') throw refusal(plan.reason, plan.when);
    if (plan.pending > 0) await apply(client, folder);
    await client.query('select pg_advisory_unlock($1)', [MIGRATION_LOCK_KEY]);
    await client.query('reset statement_timeout; reset lock_timeout');
    broken = false;
    return { applied: plan.pending };
  } finally {
    // A connection that is thrown away takes the lock and the settings with it.
    client.release(broken);
  }
}

function readKnown(folder: string): KnownMigration[] {
  try {
    return readMigrationFiles({ migrationsFolder: folder }).map(({ folderMillis, hash }) => ({ when: folderMillis, hash }));
  } catch (cause) {
    throw new CodedError('migrations_unreadable', `the migrations in ${folder} cannot be read: ${messageOf(cause)}`, { id: folder, cause });
  }
}

async function takeLock(client: pg.PoolClient): Promise<void> {
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK_KEY]);
  } catch (cause) {
    throw new CodedError(
      'migration_lock_timeout',
      `another process has been migrating this database for ${MIGRATION_LOCK_TIMEOUT_MS / 1000} s`,
      {
        action: 'Wait for it, or end it, and start again.',
        cause,
      },
    );
  }
}

async function readApplied(client: pg.PoolClient): Promise<KnownMigration[]> {
  const table = await client.query<{ found: boolean }>(`select to_regclass('drizzle.__drizzle_migrations') is not null as found`);
  if (table.rows[0]?.found !== true) return [];
  const rows = await client.query<{ hash: string; at: string }>('select hash, created_at::text as at from drizzle.__drizzle_migrations');
  return rows.rows.map(({ hash, at }) => ({ when: Number(at), hash }));
}

async function apply(client: pg.PoolClient, folder: string): Promise<void> {
  try {
    await migrate(drizzle(client), { migrationsFolder: folder });
  } catch (cause) {
    const why = cause instanceof Error && cause.cause !== undefined ? messageOf(cause.cause) : messageOf(cause);
    throw new CodedError('migration_failed', `a migration failed and nothing was changed: ${why}`, { id: folder, cause });
  }
}

const ACTIONS: Readonly<Record<MigrationRefusal, readonly [string, string]>> = {
  database_newer: ['has a migration this version does not know', 'Use the version of Firecrew that made it, or a newer one.'],
  migration_changed: ['has a migration that differs from the one in this version', 'Install the release again; its files were changed.'],
  migration_out_of_order: ['would never get a migration that is older than its last one', 'Report this release as broken.'],
};

function refusal(reason: MigrationRefusal, when: number): CodedError {
  const [what, action] = ACTIONS[reason];
  return new CodedError(reason, `the database ${what} (${new Date(when).toISOString()})`, { action });
}
