import { codeOf } from '@firecrew/base';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ConnectedDatabase, connectDatabase, inTransaction, TRANSACTION_TRIES } from '../../src/index.ts';
import { startTestDatabase, type TestDatabase, type TestDatabaseServer } from '../../src/testing/index.ts';

let databases: TestDatabaseServer;
let database: TestDatabase;
let connected: ConnectedDatabase<Record<string, never>>;
beforeAll(async () => {
  databases = await startTestDatabase();
  database = await databases.createDatabase();
  connected = await connectDatabase({ connection: database.connection });
  await connected.db.execute(sql`create table counts (id int primary key, n int not null)`);
});
afterAll(async () => {
  await connected.close();
  await database.drop();
  await databases.stop();
});
beforeEach(async () => {
  await connected.db.execute(sql`delete from counts`);
  await connected.db.execute(sql`insert into counts values (1, 0), (2, 0)`);
});

const counts = async () => (await connected.db.execute<{ n: number }>(sql`select n from counts order by id`)).rows.map(({ n }) => n);

/** Two that lock the same rows in opposite orders, each only after the other has its first one. */
async function cross() {
  let tries = 0;
  const held = [0, 0];
  const one = async (at: 0 | 1) =>
    await inTransaction(connected.db, async (tx) => {
      tries += 1;
      const [own, other] = at === 0 ? [1, 2] : [2, 1];
      await tx.execute(sql`update counts set n = n + 1 where id = ${own}`);
      held[at] = 1;
      while (held[1 - at] === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      await tx.execute(sql`update counts set n = n + 1 where id = ${other}`);
    });
  await Promise.all([one(0), one(1)]);
  return tries;
}

describe('a transaction', () => {
  it('that the database ended in favour of another is run again from its beginning, and counts once', async () => {
    expect(await cross()).toBe(3);
    expect(await counts()).toEqual([2, 2]);
  });

  it('that failed by itself is not run again, and leaves nothing', async () => {
    let tries = 0;
    const failing = inTransaction(connected.db, async (tx) => {
      tries += 1;
      await tx.execute(sql`update counts set n = 7`);
      await tx.execute(sql`insert into counts values (1, 0)`);
    });
    await expect(failing).rejects.toMatchObject({ cause: { code: '23505' } });
    expect([tries, await counts()]).toEqual([1, [0, 0]]);
  });

  it('that is ended each time fails in the end, with what the database said', async () => {
    let tries = 0;
    const failing = inTransaction(connected.db, async (tx) => {
      tries += 1;
      await tx.execute(sql`do $$ begin raise exception 'again' using errcode = '40001'; end $$`);
    });
    await expect(failing).rejects.toMatchObject({ cause: { code: '40001' } });
    expect(tries).toBe(TRANSACTION_TRIES);
  });

  it('for which no connection becomes free says that the database does not answer', async () => {
    const small = await connectDatabase({ connection: database.connection, poolMax: 1, timeoutMs: 300 });
    try {
      let end = () => {};
      const holding = small.db.transaction(() => new Promise<void>((resolve) => (end = resolve)));
      const waiting = inTransaction(small.db, async () => 1).catch(codeOf);
      expect(await waiting).toBe('database_unavailable');
      end();
      await holding;
    } finally {
      await small.close();
    }
  });
});
