import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ConnectedDatabase, connectDatabase } from '../../src/migrate/connect-database.ts';
import { MIGRATION_LOCK_KEY, migrateDatabase } from '../../src/migrate/migrate-database.ts';
import { waitUntil } from '../../src/postgres/wait-until.ts';
import { startTestDatabase, type TestDatabase, type TestDatabaseServer } from '../../src/testing/test-database.ts';

let server: TestDatabaseServer;
let database: TestDatabase;
let connected: ConnectedDatabase<Record<string, never>>;
let folder: string;

beforeAll(async () => {
  server = await startTestDatabase();
});
afterAll(() => server.stop());
beforeEach(async () => {
  database = await server.createDatabase();
  connected = await connectDatabase({ connection: database.connection });
  folder = mkdtempSync(join(tmpdir(), 'fc-migrations-'));
});
afterEach(async () => {
  await connected.close();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

function write(...statements: readonly string[]): void {
  mkdirSync(join(folder, 'meta'), { recursive: true });
  const entries = statements.map((sql, idx) => {
    writeFileSync(join(folder, `000${idx}_m.sql`), sql);
    return { idx, version: '7', when: 1_000 + idx, tag: `000${idx}_m`, breakpoints: true };
  });
  writeFileSync(join(folder, 'meta', '_journal.json'), JSON.stringify({ version: '7', dialect: 'postgresql', entries }));
}

const run = () => migrateDatabase({ pool: connected.pool, folder });
const count = async (table: string): Promise<number> =>
  (await connected.pool.query<{ n: number }>(`select count(*)::int as n from ${table}`)).rows[0]?.n ?? -1;

describe('migrations', () => {
  it('are applied once, and new ones later', async () => {
    write('create table a (n int);--> statement-breakpoint\ninsert into a values (1);');
    expect(await run()).toEqual({ applied: 1 });
    expect(await run()).toEqual({ applied: 0 });
    write('create table a (n int);--> statement-breakpoint\ninsert into a values (1);', 'insert into a values (2);');
    expect(await run()).toEqual({ applied: 1 });
    expect(await count('a')).toBe(2);
  });

  it('of five servers that start at the same time are applied by one', async () => {
    write('create table a (n int);--> statement-breakpoint\ninsert into a values (1);');
    const results = await Promise.all(Array.from({ length: 5 }, run));
    expect(results.map(({ applied }) => applied).sort()).toEqual([0, 0, 0, 0, 1]);
    expect(await count('a')).toBe(1);
  });

  it('that fail change nothing and hold no lock afterwards', async () => {
    write('create table a (n int);', 'create table b (n nonsense);');
    await expect(run()).rejects.toMatchObject({ code: 'migration_failed', message: expect.stringContaining('nonsense') });
    expect((await connected.pool.query(`select to_regclass('a') as a`)).rows).toEqual([{ a: null }]);
    write('create table a (n int);');
    expect(await run()).toEqual({ applied: 1 });
  });

  it('of a newer version refuse this one', async () => {
    write('create table a (n int);', 'create table b (n int);');
    await run();
    write('create table a (n int);');
    await expect(run()).rejects.toMatchObject({ code: 'database_newer', action: expect.stringContaining('newer') });
  });

  it('that were changed afterwards are refused', async () => {
    write('create table a (n int);');
    await run();
    write('create table a (n bigint);');
    await expect(run()).rejects.toMatchObject({ code: 'migration_changed' });
  });

  it('that are not there are an error of their own', async () => {
    await expect(run()).rejects.toMatchObject({ code: 'migrations_unreadable' });
  });

  it('wait for another process that migrates', async () => {
    write('create table a (n int);');
    const other = new pg.Client(database.connection);
    await other.connect();
    await other.query('select pg_advisory_lock($1)', [MIGRATION_LOCK_KEY]);
    let done = false;
    const migrating = run().then((result) => {
      done = true;
      return result;
    });
    const waiting = `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted`;
    expect(await waitUntil(async () => (await other.query<{ n: number }>(waiting)).rows[0]?.n === 1, 10_000)).toBe(true);
    expect(done).toBe(false);
    await other.end();
    expect(await migrating).toEqual({ applied: 1 });
  });

  it('leave the limits of the connection as they were', async () => {
    await connected.close();
    connected = await connectDatabase({ connection: database.connection, poolMax: 1 });
    write('create table a (n int);');
    await run();
    expect((await connected.pool.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '1min' }]);
  });
});

describe('a connection', () => {
  it('is made by URL as well', async () => {
    const other = await connectDatabase({ url: database.url });
    expect((await other.db.execute('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await other.close();
  });

  it('that breaks while idle is reported and replaced, and one that breaks in use rejects the query', async () => {
    const errors: Error[] = [];
    const other = await connectDatabase({ connection: database.connection, poolMax: 1, onError: (error) => errors.push(error) });
    const pid = (await other.pool.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
    await connected.pool.query('select pg_terminate_backend($1)', [pid]);
    expect(await waitUntil(() => errors.length > 0, 10_000)).toBe(true);
    expect((await other.pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await expect(other.pool.query('select pg_terminate_backend(pg_backend_pid())')).rejects.toThrow();
    expect((await other.pool.query('select 2 as two')).rows).toEqual([{ two: 2 }]);
    await other.close();
  });

  it('in the hands of a caller that breaks between two queries does not end the process', async () => {
    const client = await connected.pool.connect();
    const pid = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
    await connected.pool.query('select pg_terminate_backend($1)', [pid]);
    expect(await waitUntil(async () => (await client.query('select 1').catch(() => 'broken')) === 'broken', 10_000)).toBe(true);
    client.release(true);
  });

  it.each([
    ['no database there', { url: 'postgresql://u:secret@127.0.0.1:1/x' }, 'database_unreachable'],
    ['a URL of something else', { url: 'mysql://u:secret@h/x' }, 'database_url_invalid'],
    ['nothing at all', {}, 'database_url_invalid'],
  ])('to %s is refused without the password in the message', async (_name, options, code) => {
    const error: unknown = await connectDatabase(options).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code });
    expect(String(error)).not.toContain('secret');
  });
});
