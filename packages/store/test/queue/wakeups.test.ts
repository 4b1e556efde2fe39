import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type MissionId, newId } from '@firecrew/base';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { type ConnectedDatabase, connectDatabase } from '../../src/migrate/connect-database.ts';
import { waitUntil } from '../../src/postgres/wait-until.ts';
import { startWakeups, type WakeupOptions, type Wakeups } from '../../src/queue/wakeups.ts';
import { startTestDatabase, type TestDatabase, type TestDatabaseServer } from '../../src/testing/test-database.ts';

let server: TestDatabaseServer;
let database: TestDatabase;
let connected: ConnectedDatabase<Record<string, never>>;
const queues: Wakeups[] = [];

beforeAll(async () => {
  server = await startTestDatabase();
});
afterAll(() => server.stop());
beforeEach(async () => {
  database = await server.createDatabase();
  connected = await connectDatabase({ connection: database.connection });
});
afterEach(async () => {
  for (const queue of queues.splice(0)) await queue.stop(1_000);
  await connected.close();
  await database.drop();
});

async function start(onWakeup: WakeupOptions['onWakeup'], more: Partial<WakeupOptions> = {}): Promise<Wakeups> {
  const queue = await startWakeups({ connection: database.connection, onWakeup, ...more });
  queues.push(queue);
  return queue;
}

/** A wake-up that records its missions and, while closed, does not end. */
function gate(): { seen: MissionId[]; release: () => void; onWakeup: WakeupOptions['onWakeup'] } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const seen: MissionId[] = [];
  return {
    seen,
    release: () => open(),
    onWakeup: async (mission) => {
      seen.push(mission);
      await opened;
    },
  };
}

const eventually = async (condition: () => boolean | Promise<boolean>, ms = 20_000): Promise<void> => {
  expect(await waitUntil(condition, ms)).toBe(true);
};

async function jobs(where: string): Promise<number> {
  const found = await connected.pool.query<{ n: number }>(
    `select count(*)::int as n from firecrew_queue.job where name = 'mission-wakeup' and ${where}`,
  );
  return found.rows[0]?.n ?? -1;
}

/** Sets the clock that the queue reads in the database back by this many minutes. */
async function setBack(minutes: number): Promise<void> {
  await connected.pool.query(
    `create or replace function firecrew_queue.job_now() returns timestamp with time zone
     as $$ select pg_catalog.now() - interval '${minutes} minutes' $$ language sql stable`,
  );
}

it('wakes the mission it was asked to', async () => {
  const { seen, release, onWakeup } = gate();
  release();
  const queue = await start(onWakeup);
  const mission = newId('mission');
  await queue.wake(mission);
  await eventually(() => seen.length === 1);
  expect(seen).toEqual([mission]);
});

it('runs a wake-up sent while one is active after that one, and several such as one', async () => {
  const { seen, release, onWakeup } = gate();
  const queue = await start(onWakeup);
  const mission = newId('mission');
  await queue.wake(mission);
  await eventually(() => seen.length === 1);
  for (let count = 0; count < 3; count += 1) await queue.wake(mission);
  expect(seen.length).toBe(1);
  release();
  await eventually(() => seen.length === 2);
  await eventually(async () => (await jobs(`state < 'completed'`)) === 0);
  expect(seen).toEqual([mission, mission]);
});

it('never wakes one mission twice at the same time, over two servers', async () => {
  let now = 0;
  let most = 0;
  let runs = 0;
  const onWakeup = async (): Promise<void> => {
    now += 1;
    runs += 1;
    most = Math.max(most, now);
    await connected.pool.query('select pg_sleep(0.01)');
    now -= 1;
  };
  const [one, two] = [await start(onWakeup), await start(onWakeup)];
  const mission = newId('mission');
  await one.wake(mission);
  // Those that come before one runs are one: what is asked from now on takes another run.
  await eventually(() => runs > 0);
  for (let count = 0; count < 20; count += 1) await (count % 2 === 0 ? one : two).wake(mission);
  await eventually(async () => (await jobs(`state < 'completed'`)) === 0);
  expect(most).toBe(1);
  expect(runs).toBeGreaterThan(1);
});

it('works through many missions of one transaction without waiting for the next look', async () => {
  const seen = new Set<string>();
  const queue = await start(async (mission) => {
    seen.add(mission);
  });
  const missions = Array.from({ length: 100 }, () => newId('mission'));
  await connected.db.transaction(async (tx) => {
    for (const mission of missions) await queue.wake(mission, { tx });
  });
  await eventually(() => seen.size === 100);
});

it('does not wake before the transaction commits, nor at all when it is rolled back', async () => {
  const { seen, release, onWakeup } = gate();
  release();
  const queue = await start(onWakeup);
  const [kept, dropped] = [newId('mission'), newId('mission')];
  await connected.db
    .transaction(async (tx) => {
      await queue.wake(dropped, { tx });
      throw new Error('no');
    })
    .catch(() => {});
  await connected.db.transaction(async (tx) => {
    await queue.wake(kept, { tx });
    expect(seen).toEqual([]);
  });
  await eventually(() => seen.length === 1);
  expect(seen).toEqual([kept]);
});

it('shows a committed change to a wake-up that was already queued when the change was made', async () => {
  await connected.pool.query('create table state (n int); insert into state values (0)');
  const read: number[] = [];
  const { release, onWakeup } = gate();
  const queue = await start(async (mission, signal) => {
    if (read.length === 0) {
      read.push(-1);
      return onWakeup(mission, signal);
    }
    read.push((await connected.pool.query<{ n: number }>('select n from state')).rows[0]?.n ?? -2);
  });
  const mission = newId('mission');
  await queue.wake(mission);
  await eventually(() => read.length === 1);
  await queue.wake(mission);
  await connected.db.transaction(async (tx) => {
    await queue.wake(mission, { tx });
    // The queued wake-up is free from here on, and an unlocked one would run now and see the old state.
    release();
    await eventually(async () => (await jobs(`state = 'completed'`)) === 1);
    await tx.execute('update state set n = 1');
  });
  await eventually(() => read.length >= 2);
  expect(read.at(-1)).toBe(1);
});

it('repeats a failed wake-up and tells of it', async () => {
  const told: unknown[] = [];
  let runs = 0;
  const queue = await start(
    async () => {
      runs += 1;
      if (runs === 1) throw new Error('not now');
    },
    { onError: (error, mission) => told.push([String(error), mission]) },
  );
  const mission = newId('mission');
  await queue.wake(mission);
  await eventually(() => runs === 2);
  expect(told).toEqual([['Error: not now', mission]]);
});

it('brings a delayed repetition forward when it is woken again', async () => {
  let runs = 0;
  const queue = await start(async () => {
    runs += 1;
    if (runs === 1) throw new Error('not now');
  });
  const mission = newId('mission');
  await queue.wake(mission);
  await eventually(async () => (await jobs(`state = 'retry'`)) === 1);
  await connected.pool.query(`update firecrew_queue.job set start_after = now() + interval '1 hour' where state = 'retry'`);
  await queue.wake(mission);
  await eventually(() => runs === 2);
});

it('aborts a running wake-up at a stop, closes every connection and leaves the wake-up to the next server', async () => {
  let aborted = false;
  const first = await startWakeups({
    connection: database.connection,
    onWakeup: (_mission, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted = true;
          resolve();
        });
      }),
  });
  const mission = newId('mission');
  await first.wake(mission);
  await eventually(async () => (await jobs(`state = 'active'`)) === 1);
  await first.stop(1_000);
  expect(aborted).toBe(true);
  const left = `select count(*)::int as n from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and application_name like '%wakeups%'`;
  await eventually(async () => (await connected.pool.query<{ n: number }>(left)).rows[0]?.n === 0);
  const { seen, release, onWakeup } = gate();
  release();
  await start(onWakeup);
  await eventually(() => seen.length === 1);
});

it('repeats the wake-up of a server that was killed', async () => {
  const script = fileURLToPath(new URL('./hold-wakeup.ts', import.meta.url));
  const mission = newId('mission');
  const holder = spawn(process.execPath, [script, database.url, mission], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  holder.kill('SIGKILL');
  const { seen, release, onWakeup } = gate();
  release();
  await start(onWakeup);
  await eventually(() => seen.length === 1, 50_000);
  expect(seen).toEqual([mission]);
});

it('repeats the wake-up of a server that was killed, though the clock of the database was set back since', async () => {
  const script = fileURLToPath(new URL('./hold-wakeup.ts', import.meta.url));
  const mission = newId('mission');
  const holder = spawn(process.execPath, [script, database.url, mission], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(holder.stdout, 'data');
  const looked = 'select 1 from firecrew_queue.queue where monitor_claim_on is not null';
  await eventually(async () => (await connected.pool.query(looked)).rowCount === 1);
  holder.kill('SIGKILL');
  await setBack(60);
  const { seen, release, onWakeup } = gate();
  release();
  await start(onWakeup);
  await eventually(() => seen.length === 1, 50_000);
  expect(seen).toEqual([mission]);
});

it('leaves a wake-up to the server that is at it, though the clock of the database was set back', async () => {
  const { seen, release, onWakeup } = gate();
  const queue = await start(onWakeup);
  const mission = newId('mission');
  await queue.wake(mission);
  await eventually(() => seen.length === 1);
  await setBack(60);
  await start(onWakeup);
  await queue.wake(mission);
  const beat = async (): Promise<number> => {
    const age = `select extract(epoch from heartbeat_on - firecrew_queue.job_now())::float8 as ahead from firecrew_queue.job where state = 'active'`;
    return (await connected.pool.query<{ ahead: number }>(age)).rows[0]?.ahead ?? Number.NaN;
  };
  // Set back, grown old, and renewed by its worker.
  await eventually(async () => (await beat()) < -2);
  await eventually(async () => (await beat()) > -1);
  expect(seen).toEqual([mission]);
  release();
  await eventually(() => seen.length === 2);
});

it('goes on when the clock of the server is set back while it waits', async () => {
  let wall = Date.now();
  vi.spyOn(Date, 'now').mockImplementation(() => (wall -= 60_000));
  try {
    let runs = 0;
    const queue = await start(async () => {
      runs += 1;
      if (runs === 1) throw new Error('not now');
    });
    await queue.wake(newId('mission'));
    await eventually(() => runs === 2);
  } finally {
    vi.restoreAllMocks();
  }
});

it('goes on after the database ended all its connections', async () => {
  const { seen, release, onWakeup } = gate();
  release();
  const queue = await start(onWakeup);
  await connected.pool.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  );
  const mission = newId('mission');
  await eventually(async () => {
    await queue.wake(mission).catch(() => {});
    return seen.length > 0;
  });
});

it('says when the database cannot be used', async () => {
  const connection = { ...database.connection, password: 'wrong' };
  await expect(startWakeups({ connection, onWakeup: async () => {} })).rejects.toMatchObject({ code: 'wakeups_unavailable' });
});
