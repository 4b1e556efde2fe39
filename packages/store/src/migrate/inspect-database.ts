import { CodedError, messageOf } from '@firecrew/base';
import type pg from 'pg';
import { connectDatabase } from './connect-database.ts';

/** How long connecting and each statement of an inspection may take, in ms. */
export const INSPECT_TIMEOUT_MS = 10_000;

/**
 * SHA-256 of the first migration, as it stands in `drizzle.__drizzle_migrations` of every database of Firecrew's. The table alone says
 * nothing: every application that uses drizzle has one of that name.
 */
const FIRST_MIGRATION = '834026892855f6d5d0cb4f5266829dd368669b8db6839769bad3d8f13008dced';

/** What a database holds: nothing, the tables of a Firecrew installation (and its id, once a server has run), or tables of another application. */
export type DatabaseContents =
  | { readonly kind: 'empty' }
  | { readonly kind: 'firecrew'; readonly homeId: string | undefined }
  | { readonly kind: 'foreign'; readonly table: string };

/**
 * Looks what the database of `url` holds, in one read-only transaction. Tables, views and the like count, in every schema but those of the
 * system, and not those that belong to an extension. Throws `database_unreachable`, `database_too_old` or `database_url_invalid`.
 */
export async function inspectDatabase(url: string, timeoutMs: number = INSPECT_TIMEOUT_MS): Promise<DatabaseContents> {
  const { pool, close } = await connectDatabase({ url, poolMax: 1, timeoutMs });
  try {
    const client = await pool.connect();
    let broken = true;
    try {
      await client.query('begin transaction read only');
      const contents = await look(client);
      await client.query('rollback');
      broken = false;
      return contents;
    } finally {
      client.release(broken);
    }
  } catch (cause) {
    throw new CodedError('database_unreachable', `the database does not say what it holds: ${messageOf(cause)}`, {
      action: 'Check that it runs, its address, and the role and password.',
      cause,
    });
  } finally {
    await close();
  }
}

async function look(client: pg.PoolClient): Promise<DatabaseContents> {
  if (await isReadable(client, 'drizzle', '__drizzle_migrations')) {
    const first = await client.query('select 1 from drizzle.__drizzle_migrations where hash = $1', [FIRST_MIGRATION]);
    if (first.rows.length > 0) return { kind: 'firecrew', homeId: await readHomeId(client) };
  }
  const { rows } = await client.query<{ schema: string; name: string }>(`
    select n.nspname as schema, c.relname as name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p', 'f', 'm', 'v') and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
      and not exists (
        select 1 from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    order by 1, 2 limit 1`);
  const [first] = rows;
  return first === undefined ? { kind: 'empty' } : { kind: 'foreign', table: `${first.schema}.${first.name}` };
}

/** Whether a table is there and this role may read it: what it may not read is not of its own installation. */
async function isReadable(client: pg.PoolClient, schema: string, table: string): Promise<boolean> {
  const { rows } = await client.query(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relname = $2 and c.relkind = 'r'
      and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')`,
    [schema, table],
  );
  return rows.length > 0;
}

async function readHomeId(client: pg.PoolClient): Promise<string | undefined> {
  if (!(await isReadable(client, 'public', 'settings'))) return undefined;
  const { rows } = await client.query<{ value: string }>(`select value from public.settings where key = 'home_id'`);
  return rows[0]?.value;
}
