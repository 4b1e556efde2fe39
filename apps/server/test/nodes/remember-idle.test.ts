import { fileURLToPath } from 'node:url';
import { newId } from '@firecrew/base';
import { BASELINE_SETTLE_MS } from '@firecrew/placement';
import { createMissionSchema } from '@firecrew/protocol';
import { type ConnectedDatabase, connectDatabase, migrateDatabase, tables } from '@firecrew/store';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ConnectedNode } from '../../src/nodes/node-registry.ts';
import { rememberIdle } from '../../src/nodes/remember-idle.ts';

let databases: TestDatabaseServer;
let database: ConnectedDatabase<typeof tables>;
let nowMs: number;
let node: ConnectedNode & { health: NonNullable<ConnectedNode['health']> };

beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  const { connection } = await databases.createDatabase();
  database = await connectDatabase({ connection, schema: tables });
  await migrateDatabase({
    pool: database.pool,
    folder: fileURLToPath(new URL('../../../../packages/store/migrations', import.meta.url)),
  });
  nowMs = 1_000_000;
  const health = { memoryTotalMib: 8_000, memoryUsedMib: 500, diskFreeMib: 1_000, cpuPercent: 0, load1: 0 };
  const silent = () => undefined;
  node = {
    id: newId('node'),
    name: 'n',
    send: silent,
    close: silent,
    capabilities: null,
    health,
    healthAtMs: nowMs,
    vms: null,
    lastEnd: null,
    imagesTokenHash: '',
    told: new Set(),
  };
  await database.db.insert(tables.nodes).values({ id: node.id, name: 'n', publicKey: 'k' });
});
afterEach(() => database.close());

/** Reports the health of the node after `ms` more; gives what is remembered then. */
async function report(ms: number, memoryUsedMib: number): Promise<number | null> {
  nowMs += ms;
  node.healthAtMs = nowMs;
  node.health = { ...node.health, memoryUsedMib };
  await rememberIdle({ db: database.db, clock: () => nowMs }, node);
  const [row] = await database.db.select().from(tables.nodes);
  return row?.idleBaselineMib ?? null;
}

/** Stores an attempt of the node that ended when the database's clock was `hours` ahead of now, or that is open. */
async function attempt(state: 'ended' | 'accepted', hours = 0): Promise<void> {
  const { db } = database;
  const workspaceId = newId('workspace');
  const [missionId, turnId] = [newId('mission'), newId('turn')];
  const phases = [{ kind: 'coding', task: 'x' }];
  const spec = createMissionSchema.parse({ title: 't', repository: { kind: 'none' }, phases, agent: { command: 'true' } });
  await db.insert(tables.workspaces).values({ id: workspaceId, name: workspaceId });
  await db.insert(tables.missions).values({ id: missionId, workspaceId, title: 't', state: 'running', spec });
  const turn = { phaseId: newId('phase'), runId: newId('run'), step: 0, graphNode: 'n', state: 'ended', ordinal: 0 } as const;
  await db.insert(tables.turns).values({ id: turnId, missionId, ...turn });
  const endedAt = state === 'ended' ? sql`now() + ${hours} * interval '1 hour'` : null;
  await db.insert(tables.attempts).values({ turnId, attempt: 1, epoch: 1, nodeId: node.id, state, endedAt });
}

describe('what a host uses while it is idle', () => {
  it('is remembered at once where no attempt has ever ended', async () => {
    expect(await report(0, 500)).toBe(500);
  });

  it('is not what it uses while something is on it that no attempt explains, or while it cannot say', async () => {
    const vm = { turnId: newId('turn'), attempt: 1, name: '1a', kind: 'agent', demand: null } as const;
    node.vms = { status: 'known', vms: [vm] };
    expect(await report(0, 500)).toBeNull();
    node.vms = { status: 'unknown', error: 'EIO' };
    expect(await report(0, 500)).toBeNull();
    node.vms = { status: 'known', vms: [] };
    expect(await report(0, 500)).toBe(500);
  });

  it.each([-1, 0, 1])('is remembered when the memory of an attempt has had time to settle, with its end %d h ahead', async (hours) => {
    expect(await report(0, 500)).toBe(500);
    await attempt('ended', hours);
    expect(await report(1_000, 4_000)).toBe(500);
    expect(await report(BASELINE_SETTLE_MS - 1, 3_000)).toBe(500);
    expect(await report(1, 600)).toBe(600);
  });

  it('is not looked at while an attempt is open, and settles anew after each end', async () => {
    await attempt('ended');
    expect(await report(0, 500)).toBeNull();
    await attempt('accepted');
    expect(await report(2 * BASELINE_SETTLE_MS, 4_000)).toBeNull();
    await database.db.update(tables.attempts).set({ state: 'ended' });
    expect(await report(1_000, 3_000)).toBeNull();
    expect(await report(BASELINE_SETTLE_MS, 700)).toBe(700);
  });
});
