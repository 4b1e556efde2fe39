import { connect, createServer, type Server, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connectDatabase } from '../../src/migrate/connect-database.ts';
import { pinDatabaseUrl } from '../../src/migrate/database-place.ts';
import { inspectDatabase } from '../../src/migrate/inspect-database.ts';
import { migrateDatabase } from '../../src/migrate/migrate-database.ts';
import { connectionUrl } from '../../src/postgres/start-postgres.ts';
import { startTestDatabase, type TestDatabase, type TestDatabaseServer } from '../../src/testing/test-database.ts';

const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url));
const DRIZZLE =
  'create schema drizzle; create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)';

let server: TestDatabaseServer;
let database: TestDatabase;
beforeAll(async () => {
  server = await startTestDatabase();
});
afterAll(() => server.stop());
beforeEach(async () => {
  database = await server.createDatabase();
});
afterEach(() => database.drop());

async function run(...statements: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client(database.connection);
  await client.connect();
  try {
    let rows: readonly Record<string, unknown>[] = [];
    for (const statement of statements) rows = (await client.query<Record<string, unknown>>(statement)).rows;
    return rows;
  } finally {
    await client.end();
  }
}

async function migrate(): Promise<void> {
  const { pool, close } = await connectDatabase({ url: database.url });
  await migrateDatabase({ pool, folder: MIGRATIONS });
  await close();
}

/** A role that may connect and nothing else, and the URL with it. */
async function stranger(): Promise<{ url: string; drop(): Promise<void> }> {
  await run(`create role stranger login password 'x'`);
  const drop = async (): Promise<void> => void (await run('drop owned by stranger', 'drop role stranger'));
  return { url: connectionUrl({ ...database.connection, user: 'stranger', password: 'x' }), drop };
}

describe('the contents of a database', () => {
  it('are none in a new one, and after a look', async () => {
    expect(await inspectDatabase(database.url)).toEqual({ kind: 'empty' });
    expect(await inspectDatabase(database.url)).toEqual({ kind: 'empty' });
  });

  it.each([
    ['a function', 'create function f() returns int as $$ select 1 $$ language sql'],
    ['a schema', 'create schema app'],
    ['an extension with tables of its own', 'create extension pg_stat_statements'],
  ])('are none with %s alone', async (_what, statement) => {
    await run(statement);
    expect(await inspectDatabase(database.url)).toEqual({ kind: 'empty' });
  });

  it.each([
    ['a table', 'create table users (id int)', 'public.users'],
    ['a table of another schema', 'create schema app; create table app.users (id int)', 'app.users'],
    ['a partitioned table', 'create table parts (id int) partition by list (id)', 'public.parts'],
    ['a view', 'create view seen as select 1 as one', 'public.seen'],
    ['a materialised view', 'create materialized view kept as select 1 as one', 'public.kept'],
    [
      'migrations of drizzle that are not ours',
      `${DRIZZLE}; insert into drizzle.__drizzle_migrations (hash) values ('x')`,
      'drizzle.__drizzle_migrations',
    ],
    ['migrations of drizzle, none of them applied', DRIZZLE, 'drizzle.__drizzle_migrations'],
    ['names as ours', 'create table settings (key text, value text); create table missions (id text)', 'public.missions'],
  ])('are another application’s with %s', async (_what, statement, table) => {
    await run(statement);
    expect(await inspectDatabase(database.url)).toEqual({ kind: 'foreign', table });
  });

  it('are another application’s though the role may read none of them', async () => {
    await run('create schema app; create table app.users (id int); revoke all on schema app from public');
    const { url, drop } = await stranger();
    expect(await inspectDatabase(url)).toEqual({ kind: 'foreign', table: 'app.users' });
    await drop();
  });

  it('are Firecrew’s after our migrations, with the installation once a server has run', async () => {
    await migrate();
    expect(await inspectDatabase(database.url)).toEqual({ kind: 'firecrew', homeId: undefined });
    await run(`insert into settings (key, value) values ('home_id', 'home_1')`);
    expect(await inspectDatabase(database.url)).toEqual({ kind: 'firecrew', homeId: 'home_1' });
  });

  it('are not Firecrew’s for a role that may not read our migrations', async () => {
    await migrate();
    const { url, drop } = await stranger();
    expect(await inspectDatabase(url)).toMatchObject({ kind: 'foreign' });
    await drop();
  });
});

describe('a database that cannot be looked into', () => {
  it.each([
    ['is not there', () => connectionUrl({ ...database.connection, database: 'no_such' })],
    ['has another password', () => connectionUrl({ ...database.connection, password: 'secret' })],
    ['runs nowhere', () => 'postgres://u:secret@127.0.0.1:1/x'],
  ])('%s', async (_what, url) => {
    const error: unknown = await inspectDatabase(url()).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: 'database_unreachable' });
    expect(String(error)).not.toContain('secret');
  });

  it.each([
    ['from the beginning', false],
    ['after it let us in', true],
  ])('falls silent %s, and is not waited for', async (_when, letsIn) => {
    const silent = await SilentServer.start(database, letsIn);
    const began = performance.now();
    await expect(inspectDatabase(silent.url, 500)).rejects.toMatchObject({ code: 'database_unreachable' });
    expect(performance.now() - began).toBeLessThan(5_000);
    await silent.stop();
  });
});

it('looks where a pinned URL says, whatever PG variables do', async () => {
  await run('create table users (id int)');
  const { user, password, host, port } = database.connection;
  const saved = { ...process.env };
  Object.assign(process.env, { PGHOST: '/nowhere', PGPORT: '1', PGDATABASE: 'other' });
  try {
    const { url } = pinDatabaseUrl(`postgres://${user}:${password}@/${database.connection.database}?host=${encodeURIComponent(host)}`);
    expect(url).toContain(`port=${port}`);
    expect(await inspectDatabase(url)).toEqual({ kind: 'foreign', table: 'public.users' });
  } finally {
    for (const name of ['PGHOST', 'PGPORT', 'PGDATABASE']) {
      if (saved[name] === undefined) delete process.env[name];
      else process.env[name] = saved[name];
    }
  }
});

/** In front of a database: passes everything on until the client is let in, or nothing at all, and never ends a connection. */
class SilentServer {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  readonly #database: TestDatabase;

  private constructor(database: TestDatabase, letsIn: boolean) {
    this.#database = database;
    const { host, port } = database.connection;
    this.#server = createServer((client) => {
      this.#sockets.add(client.on('error', () => undefined));
      if (!letsIn) return;
      const behind = connect(`${host}/.s.PGSQL.${port}`).on('error', () => undefined);
      this.#sockets.add(behind);
      client.pipe(behind);
      behind.on('data', (data: Buffer) => {
        client.write(data);
        // ReadyForQuery, idle: what comes next is the first statement.
        if (data.includes(Buffer.from('Z\0\0\0\u0005I'))) client.unpipe(behind).resume();
      });
    });
  }

  static async start(database: TestDatabase, letsIn: boolean): Promise<SilentServer> {
    const silent = new SilentServer(database, letsIn);
    await new Promise<void>((resolve) => silent.#server.listen(0, '127.0.0.1', resolve));
    return silent;
  }

  get url(): string {
    const address = this.#server.address();
    const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
    return connectionUrl({ ...this.#database.connection, host: '127.0.0.1', port });
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
