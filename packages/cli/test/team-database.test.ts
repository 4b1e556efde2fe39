// Which database a home uses, for real: DATABASE_URL, a PostgreSQL that is not Firecrew's own, and the services of a home.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { connectDatabase } from '@firecrew/store';
import { startTestDatabase, type TestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Ended, TestHome } from './command.ts';

/** Services are started and stopped in each test; a machine at work takes its time. In ms. */
const TEST_MS = 120_000;

let server: TestDatabaseServer;
let team: TestDatabase;
let shop: TestDatabase;
beforeAll(async () => {
  server = await startTestDatabase();
  team = await server.createDatabase();
  shop = await server.createDatabase();
  await query(shop, 'create table orders (id int)');
});
afterAll(() => server.stop());

async function query(database: TestDatabase, statement: string): Promise<readonly Record<string, unknown>[]> {
  const { pool, close } = await connectDatabase({ url: database.url, poolMax: 1 });
  try {
    return (await pool.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await close();
  }
}

const tables = async (database: TestDatabase): Promise<readonly unknown[]> =>
  (await query(database, `select tablename from pg_tables where schemaname = 'public' order by 1`)).map(({ tablename }) => tablename);

const up = async (home: TestHome, env: Record<string, string> = {}): Promise<Ended> => await home.start(['up'], { env }).ended;
const hasCluster = (home: TestHome): boolean => existsSync(join(home.root, 'database/data'));
/** Nothing that is said may let anybody in. */
const expectNoPassword = (...texts: readonly string[]): void => {
  for (const text of texts) expect(text).not.toContain(team.connection.password);
};

describe('a home whose first start finds an empty database in DATABASE_URL', () => {
  const home = new TestHome();
  afterAll(() => home.remove());
  const memory = join(home.root, 'home-database.json');
  const name = (): string => `${team.connection.host}:${team.connection.port}/${team.connection.database}`;

  it(
    'uses it, and has none of its own',
    async () => {
      const { code, stderr } = await up(home, { DATABASE_URL: team.url });
      expect([code, stderr]).toEqual([0, expect.stringContaining(`uses the database ${name()} from now on, as DATABASE_URL says`)]);
      expect(await tables(team)).toContain('missions');
      expect(hasCluster(home)).toBe(false);
      expect((await home.status()).database).toBeNull();
      expect(statSync(memory).mode & 0o777).toBe(0o600);
      expectNoPassword(stderr, readFileSync(memory, 'utf8'));
    },
    TEST_MS,
  );

  it(
    'is used by commands without it while its services run',
    async () => {
      const { code, stdout } = await home.run('missions', '--json');
      expect([code, JSON.parse(stdout)]).toEqual([0, []]);
    },
    TEST_MS,
  );

  it(
    'keeps it when its supervisor is started anew by a command without it',
    async () => {
      const before = await home.status();
      process.kill(before.supervisor?.pid ?? 0, 'SIGKILL');
      const { code, stderr } = await up(home);
      expect([code, stderr]).toEqual([0, 'starting firecrew ...\n']);
      const after = await home.status();
      expect([after.server?.pid, after.database]).toEqual([before.server?.pid, null]);
      expect(after.supervisor?.pid).not.toBe(before.supervisor?.pid);
    },
    TEST_MS,
  );

  it.each([
    ['without it', () => ({})],
    ['with another one', () => ({ DATABASE_URL: shop.url })],
  ])(
    'is not started %s',
    async (_what, env) => {
      expect((await home.run('down')).code).toBe(0);
      const { code, stderr } = await up(home, env());
      expect([code, stderr]).toEqual([2, expect.stringMatching(/database_not_named.*\n.*FIRECREW_DATABASE_URL/)]);
      expect(stderr).toContain(name());
      expectNoPassword(stderr);
      expect([hasCluster(home), (await home.status()).supervisor]).toEqual([false, null]);
    },
    TEST_MS,
  );

  it(
    'is started with it again, and nothing is said',
    async () => {
      const { code, stderr } = await up(home, { DATABASE_URL: team.url });
      expect([code, stderr]).toEqual([0, 'starting firecrew ...\n']);
      expect(hasCluster(home)).toBe(false);
      expect((await home.run('down')).code).toBe(0);
    },
    TEST_MS,
  );

  it(
    'moves to one of its own when it is told to',
    async () => {
      const { code, stderr } = await up(home, { DATABASE_URL: team.url, FIRECREW_DATABASE_URL: 'own' });
      // The blobs of the home are known to the database that it leaves: without work in them they are no hindrance.
      expect([code, stderr]).toEqual([0, expect.stringMatching(/from now on it uses its own PostgreSQL, as FIRECREW_DATABASE_URL says/)]);
      expect(hasCluster(home)).toBe(true);
      expect((await home.run('down')).code).toBe(0);
    },
    TEST_MS,
  );

  it(
    'stays with its own one, whatever DATABASE_URL says',
    async () => {
      expect(await up(home, { DATABASE_URL: team.url })).toMatchObject({ code: 0, stderr: 'starting firecrew ...\n' });
      expect((await home.status()).database).not.toBeNull();
    },
    TEST_MS,
  );
});

describe('a home whose first start finds something else in DATABASE_URL', () => {
  const home = new TestHome();
  afterAll(() => home.remove());

  it(
    'is not started while nothing answers there, and says both ways out',
    async () => {
      const { code, stderr } = await up(home, { DATABASE_URL: 'postgresql://u:hidden@127.0.0.1:1/none' });
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/database_unreachable.*127\.0\.0\.1:1\/none.*\n.*Start it.*FIRECREW_DATABASE_URL=own/),
      ]);
      expect(stderr).not.toContain('hidden');
      expect([hasCluster(home), (await home.status()).supervisor]).toEqual([false, null]);
    },
    TEST_MS,
  );

  it(
    'leaves the tables of another application alone, uses its own and says so',
    async () => {
      const { code, stderr } = await up(home, { DATABASE_URL: shop.url });
      expect([code, stderr]).toEqual([
        0,
        expect.stringMatching(/another application \(public\.orders\).*own PostgreSQL.*FIRECREW_DATABASE_URL/),
      ]);
      expectNoPassword(stderr);
      expect((await home.status()).database).not.toBeNull();
      expect(await tables(shop)).toEqual(['orders']);
      expect(hasCluster(home)).toBe(true);
    },
    TEST_MS,
  );
});
