import { fileURLToPath } from 'node:url';
import { newId } from '@firecrew/base';
import type { MissionAggregate, RunPlanner } from '@firecrew/mission';
import { missionStoreCases } from '@firecrew/mission/testing';
import type { CreateMission, TurnEvent } from '@firecrew/protocol';
import { createMissionSchema } from '@firecrew/protocol';
import { asc, eq, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type ConnectedDatabase,
  connectDatabase,
  type Database,
  LOGS_CHANNEL,
  migrateDatabase,
  PostgresMissionStore,
  tables,
} from '../../src/index.ts';
import { startTestDatabase, type TestDatabase, type TestDatabaseServer } from '../../src/testing/index.ts';

const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url));
const SOLO: RunPlanner = {
  start: () => ({ checkpoint: { at: 0 }, turns: [{ step: 0, graphNode: 'n0' }] }),
  advance: () => ({ checkpoint: { at: 1 }, turns: [], done: true }),
};
const SPEC: CreateMission = createMissionSchema.parse({
  title: 'A mission',
  repository: { kind: 'none' },
  phases: [
    { kind: 'coding', task: 'one' },
    { kind: 'coding', task: 'two' },
  ],
  agent: { command: 'true' },
});

let server: TestDatabaseServer;
let database: TestDatabase;
let connected: ConnectedDatabase<typeof tables>;
let db: Database;
let store: PostgresMissionStore;
let woken: string[];
let missionId: string;
let nodeId: string;

beforeAll(async () => {
  server = await startTestDatabase({
    prepare: async (connection) => {
      const pool = new pg.Pool(connection);
      await migrateDatabase({ pool, folder: MIGRATIONS });
      await pool.end();
    },
  });
});
afterAll(() => server.stop());

beforeEach(async () => {
  database = await server.createDatabase();
  connected = await connectDatabase({ connection: database.connection, schema: tables });
  db = connected.db;
  woken = [];
  store = new PostgresMissionStore({
    db,
    planner: SOLO,
    wake: async (id) => void woken.push(id),
    endOf: async (_tx, _row, mission) => ({
      kind: 'mission.ended',
      end: { missionState: mission.state, outcome: null, exitCode: 1, detail: '', delivery: null, denied: [] },
    }),
  });
  const workspaceId = newId('workspace');
  nodeId = newId('node');
  missionId = newId('mission');
  await db.insert(tables.workspaces).values({ id: workspaceId, name: 'w' });
  await db.insert(tables.nodes).values({ id: nodeId, name: 'local', publicKey: 'k' });
  await store.create({ id: missionId, workspaceId, spec: SPEC, base: null });
});
afterEach(async () => {
  await connected.close();
  await database.drop();
});

async function startAttempt(): Promise<{ turnId: string; attempt: number; epoch: number }> {
  const launched = await store.apply(missionId, { type: 'launch' });
  const turnId = launched.ok ? (launched.mission.turns[0]?.id ?? '') : '';
  await store.apply(missionId, { type: 'attempt_reserved', turnId, epoch: 1, nodeId, node: 'local' });
  return { turnId, attempt: 1, epoch: 1 };
}

const notice = (seq: number): TurnEvent => ({
  seq,
  at: '2026-01-01T00:00:00.000Z',
  body: { kind: 'notice', level: 'info', code: 'n', message: `${seq}` },
});

async function eventKinds(): Promise<string[]> {
  const rows = await db.select().from(tables.events).where(eq(tables.events.missionId, missionId)).orderBy(asc(tables.events.seq));
  expect(rows.map((row) => row.seq)).toEqual(rows.map((_, index) => index + 1));
  return rows.map((row) => row.body.kind);
}

describe('the store in PostgreSQL', () => {
  it.each(missionStoreCases.map((item) => [item.name, item] as const))('%s', async (_name, item) => {
    await item.run({ store, missionId, nodeId, unknownMissionId: newId('mission') });
  });

  it('writes state, events and wake-up together, or none of them', async () => {
    await store.apply(missionId, { type: 'launch' });
    expect(await eventKinds()).toEqual(['mission.created', 'mission.started', 'phase.started']);
    expect(woken).toEqual([missionId]);
    const failing = store.apply(missionId, { type: 'cancel' }, async () => {
      throw new Error('the disk is gone');
    });
    await expect(failing).rejects.toThrow('the disk is gone');
    expect((await store.load(missionId))?.cancelRequested).toBe(false);
    expect(await eventKinds()).toEqual(['mission.created', 'mission.started', 'phase.started']);
  });

  it.each([-1, 1])('takes the end of an attempt from the clock of the database, with a server whose own is %d h off', async (hours) => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3_600_000 });
    try {
      const key = await startAttempt();
      await store.apply(missionId, { type: 'cancel' });
      await store.apply(missionId, {
        type: 'attempt_ended',
        ...key,
        outcome: { kind: 'cancelled' },
        detail: '',
        tree: null,
        verified: false,
      });
    } finally {
      vi.useRealTimers();
    }
    const age = (at: PgColumn) => sql<number>`extract(epoch from now() - ${at})::float8`;
    const [attempt] = await db.select({ age: age(tables.attempts.endedAt) }).from(tables.attempts);
    const [mission] = await db.select({ age: age(tables.missions.endedAt) }).from(tables.missions);
    for (const found of [attempt, mission]) expect(found?.age).toSatisfy((seconds: number) => seconds >= -1 && seconds < 60);
  });

  it('never ends an attempt before its start, also where the clock of the database was set back meanwhile', async () => {
    const key = await startAttempt();
    await db.update(tables.attempts).set({ startedAt: sql`now() + interval '1 hour'` });
    await db.update(tables.missions).set({ createdAt: sql`now() + interval '1 hour'` });
    await store.apply(missionId, { type: 'cancel' });
    const outcome = { kind: 'cancelled' } as const;
    await store.apply(missionId, { type: 'attempt_ended', ...key, outcome, detail: '', tree: null, verified: false });
    const [attempt] = await db.select().from(tables.attempts);
    const [mission] = await db.select().from(tables.missions);
    expect([attempt?.endedAt, mission?.endedAt]).toEqual([attempt?.startedAt, mission?.createdAt]);
  });

  it('ends a mission with one closing event and its time', async () => {
    await store.apply(missionId, { type: 'launch' });
    await store.apply(missionId, { type: 'cancel' });
    expect((await eventKinds()).filter((kind) => kind === 'mission.ended')).toHaveLength(1);
    const [row] = await db.select().from(tables.missions).where(eq(tables.missions.id, missionId));
    expect([row?.state, row?.endedAt instanceof Date, row?.end?.missionState]).toEqual(['cancelled', true, 'cancelled']);
  });
});

describe('events of an attempt', () => {
  it('are stored once, in order, however often and in whatever pieces they come', async () => {
    const key = await startAttempt();
    expect(await store.recordTurnEvents(key, [notice(1), notice(2)])).toEqual({ ok: true, acked: 2, before: 0 });
    expect(await store.recordTurnEvents(key, [notice(2), notice(3)])).toEqual({ ok: true, acked: 3, before: 2 });
    expect(await store.recordTurnEvents(key, [notice(5)])).toEqual({ ok: true, acked: 3, before: 3 });
    const racing = await Promise.all([store.recordTurnEvents(key, [notice(4)]), store.recordTurnEvents(key, [notice(4), notice(5)])]);
    expect(racing.every((result) => result.ok)).toBe(true);
    const kinds = await eventKinds();
    expect(kinds.filter((kind) => kind === 'turn.event').length).toBeGreaterThanOrEqual(4);
    const rows = await db.select().from(tables.events).where(eq(tables.events.missionId, missionId)).orderBy(asc(tables.events.seq));
    const seqs = rows.flatMap((row) => (row.body.kind === 'turn.event' ? [row.body.seq] : []));
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  });

  it('of an attempt that is over, of another epoch or of none are refused', async () => {
    const key = await startAttempt();
    expect(await store.recordTurnEvents({ ...key, epoch: 2 }, [notice(1)])).toEqual({ ok: false, code: 'attempt_unknown' });
    expect(await store.recordTurnEvents({ ...key, turnId: newId('turn') }, [notice(1)])).toEqual({ ok: false, code: 'attempt_unknown' });
    await store.apply(missionId, {
      type: 'attempt_ended',
      ...key,
      outcome: { kind: 'lost', reason: 'node_lost' },
      detail: '',
      tree: null,
      verified: false,
    });
    expect(await store.recordTurnEvents(key, [notice(1)])).toEqual({ ok: false, code: 'attempt_stale' });
  });
});

describe('log bytes of an attempt', () => {
  const text = async (turnId: string) => {
    const rows = await db.select().from(tables.logChunks).where(eq(tables.logChunks.turnId, turnId)).orderBy(asc(tables.logChunks.at));
    return Buffer.concat(rows.map((row) => row.bytes)).toString();
  };

  it('are stored once by their offset, and a gap is refused with what is here', async () => {
    const key = await startAttempt();
    expect(await store.appendLog(key, 0, Buffer.from('hello '))).toEqual({ ok: true, length: 6 });
    expect(await store.appendLog(key, 3, Buffer.from('lo world'))).toEqual({ ok: true, length: 11 });
    expect(await store.appendLog(key, 0, Buffer.from('hello'))).toEqual({ ok: true, length: 11 });
    expect(await store.appendLog(key, 20, Buffer.from('x'))).toEqual({ ok: false, code: 'log_gap', length: 11 });
    expect(await text(key.turnId)).toBe('hello world');
  });

  it('that come twice at once are stored once', async () => {
    const key = await startAttempt();
    const pieces = ['abc', 'def', 'ghi'];
    for (const [index, piece] of pieces.entries()) {
      const appended = Array.from({ length: 8 }, () => store.appendLog(key, index * 3, Buffer.from(piece)));
      for (const result of await Promise.all(appended)) expect(result).toEqual({ ok: true, length: index * 3 + 3 });
    }
    expect(await text(key.turnId)).toBe('abcdefghi');
    const [row] = await db.select().from(tables.attempts).where(eq(tables.attempts.turnId, key.turnId));
    expect(row?.logBytes).toBe(9);
  });

  it('of another epoch or attempt are not taken for those of this one', async () => {
    const key = await startAttempt();
    await store.appendLog(key, 0, Buffer.from('abc'));
    for (const other of [
      { ...key, epoch: 2 },
      { ...key, attempt: 2 },
    ])
      expect(await store.appendLog(other, 3, Buffer.from('x'))).toMatchObject({ ok: false, code: 'attempt_unknown' });
    expect(await text(key.turnId)).toBe('abc');
  });

  it('are what they were, bytes and not text', async () => {
    const key = await startAttempt();
    const bytes = Buffer.from([0, 255, 10, 0xc3, 0x28]);
    await store.appendLog(key, 0, bytes);
    const [row] = await db.select().from(tables.logChunks).where(eq(tables.logChunks.turnId, key.turnId));
    expect(row?.bytes.equals(bytes)).toBe(true);
  });

  it('of a fenced attempt are refused', async () => {
    const key = await startAttempt();
    await store.apply(missionId, {
      type: 'attempt_ended',
      ...key,
      outcome: { kind: 'lost', reason: 'node_lost' },
      detail: '',
      tree: null,
      verified: false,
    });
    expect(await store.appendLog(key, 0, Buffer.from('late'))).toMatchObject({ ok: false, code: 'attempt_stale' });
    expect(await text(key.turnId)).toBe('');
  });

  it('are told to whoever listens, once committed', async () => {
    const key = await startAttempt();
    const listener = new pg.Client(database.connection);
    await listener.connect();
    const told: (string | undefined)[] = [];
    listener.on('notification', ({ payload }) => told.push(payload));
    await listener.query(`listen ${LOGS_CHANNEL}`);
    await store.appendLog(key, 0, Buffer.from('abc'));
    await expect.poll(() => told).toEqual([missionId]);
    await store.appendLog(key, 1, Buffer.from('bcd'));
    await expect.poll(() => told).toEqual([missionId, missionId]);
    await store.appendLog(key, 0, Buffer.from('abcd'));
    await listener.query('select 1');
    expect(told).toEqual([missionId, missionId]);
    await listener.end();
  });
});

describe('a retried mission', () => {
  it('runs again, with its end taken back', async () => {
    const key = await startAttempt();
    await store.apply(missionId, {
      type: 'attempt_ended',
      ...key,
      outcome: { kind: 'setup_failed' },
      detail: '',
      tree: null,
      verified: false,
    });
    expect((await store.load(missionId))?.state).toBe('failed');
    const retried = await store.apply(missionId, { type: 'retry' });
    expect(retried.ok && (retried.mission satisfies MissionAggregate).state).toBe('running');
    const [row] = await db.select().from(tables.missions).where(eq(tables.missions.id, missionId));
    expect([row?.state, row?.endedAt, row?.end]).toEqual(['running', null, null]);
  });
});
