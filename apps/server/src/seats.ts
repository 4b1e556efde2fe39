import { CodedError, newId } from '@firecrew/base';
import {
  DEFAULT_SEAT_TURNS,
  MAX_SEAT_ATTEMPTS,
  type SeatBudgetChange,
  type SeatDetail,
  type SeatRevoked,
  type SeatView,
} from '@firecrew/protocol';
import { inTransaction, type Transaction, tables } from '@firecrew/store';
import { and, asc, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { ServerContext } from './context.ts';
import { driveMission } from './driver/drive-mission.ts';
import { budgetView, changeBudget, readSeatNumbers, seatAttempts, useView } from './seat-budgets.ts';

/** Code of the notice that a mission whose seat was revoked gets, and first word of the detail of its turns. */
export const SEAT_REVOKED = 'seat_revoked';

/** The seats of a workspace by role, with their live keys and the turns under each. */
export async function listSeats(context: ServerContext, workspaceId: string): Promise<SeatView[]> {
  const { apiTokens, attempts, missions, seats, turns } = tables;
  const rows = await context.db.select().from(seats).where(eq(seats.workspaceId, workspaceId)).orderBy(asc(seats.role));
  const keys = await context.db
    .select()
    .from(apiTokens)
    .where(and(eq(apiTokens.workspaceId, workspaceId), eq(apiTokens.role, 'seat'), isNull(apiTokens.revokedAt)))
    .orderBy(asc(apiTokens.createdAt), asc(apiTokens.id));
  const held = await context.db
    .select({ seatId: missions.seatId, turns: sql<number>`count(*)::int` })
    .from(attempts)
    .innerJoin(turns, eq(turns.id, attempts.turnId))
    .innerJoin(missions, eq(missions.id, turns.missionId))
    .where(and(eq(missions.workspaceId, workspaceId), sql`${attempts.state} <> 'ended'`))
    .groupBy(missions.seatId);
  const numbersOf = await readSeatNumbers(
    context.db,
    rows.map(({ id }) => id),
  );
  return rows.map(({ id, role, linked, maxTurns, leaseMs, budget, createdAt }) => ({
    id,
    role,
    linked,
    maxTurns,
    turns: held.find((item) => item.seatId === id)?.turns ?? 0,
    keys: keys.flatMap((key) => (key.seatId === id ? [{ id: key.id, name: key.name, createdAt: key.createdAt.toISOString() }] : [])),
    leaseMs,
    budget: budgetView(budget),
    use: useView(numbersOf(id)),
    createdAt: createdAt.toISOString(),
  }));
}

/** One seat with its newest attempts. Throws `seat_not_found`. */
export async function showSeat(context: ServerContext, workspaceId: string, seatId: string): Promise<SeatDetail> {
  const seat = (await listSeats(context, workspaceId)).find((item) => item.id === seatId);
  if (seat === undefined) throw seatNotFound(seatId);
  return { seat, attempts: await seatAttempts(context.db, seatId, MAX_SEAT_ATTEMPTS) };
}

/** Makes the seat of a role, or links it again: the same seat, so that what it did stays with it. Of a budget, what is not said stays. */
export async function linkSeat(
  context: ServerContext,
  workspaceId: string,
  wish: {
    readonly role: string;
    readonly maxTurns?: number | undefined;
    readonly leaseMs?: number | null | undefined;
    readonly budget?: SeatBudgetChange | undefined;
  },
): Promise<SeatView> {
  const { seats } = tables;
  const { role, maxTurns, leaseMs } = wish;
  const id = await inTransaction(context.db, async (tx) => {
    const made = { id: newId('seat'), workspaceId, role, maxTurns: maxTurns ?? DEFAULT_SEAT_TURNS };
    await tx
      .insert(seats)
      .values(made)
      .onConflictDoNothing({ target: [seats.workspaceId, seats.role] });
    const which = and(eq(seats.workspaceId, workspaceId), eq(seats.role, role));
    const [row] = await tx.select().from(seats).where(which).for('no key update');
    if (row === undefined) throw seatNotFound(role);
    const set = {
      linked: true,
      budget: changeBudget(row.budget, wish.budget),
      ...(maxTurns === undefined ? {} : { maxTurns }),
      ...(leaseMs === undefined ? {} : { leaseMs }),
    };
    await tx.update(seats).set(set).where(which);
    return row.id;
  });
  const found = (await listSeats(context, workspaceId)).find((seat) => seat.id === id);
  if (found === undefined) throw seatNotFound(role);
  return found;
}

/** Stores a new key of a linked seat by its hash; gives the id of the key and when it was made. */
export async function addSeatKey(
  context: ServerContext,
  key: { readonly workspaceId: string; readonly seatId: string; readonly name: string; readonly hash: string },
): Promise<{ id: string; createdAt: string }> {
  return await inTransaction(context.db, async (tx) => {
    const { seats, apiTokens } = tables;
    const [seat] = await tx
      .select()
      .from(seats)
      .where(and(eq(seats.id, key.seatId), eq(seats.workspaceId, key.workspaceId)))
      .for('share');
    if (seat === undefined) throw seatNotFound(key.seatId);
    if (!seat.linked)
      throw new CodedError('seat_unlinked', `the seat of the role ${seat.role} is not linked`, {
        id: seat.id,
        action: `Link it first: firecrew seat link ${seat.role}`,
      });
    const [row] = await tx
      .insert(apiTokens)
      .values({ id: newId('token'), ...key, role: 'seat' })
      .returning({ id: apiTokens.id, createdAt: apiTokens.createdAt });
    if (row === undefined) throw seatNotFound(key.seatId);
    return { id: row.id, createdAt: row.createdAt.toISOString() };
  });
}

/** Unlinks a seat: its keys are revoked, and what runs or waits under it is ended. */
export async function unlinkSeat(context: ServerContext, workspaceId: string, seatId: string): Promise<SeatRevoked> {
  const { seats, apiTokens, missions } = tables;
  const ended = await inTransaction(context.db, async (tx) => {
    const rows = await tx
      .update(seats)
      .set({ linked: false })
      .where(and(eq(seats.id, seatId), eq(seats.workspaceId, workspaceId)))
      .returning({ role: seats.role });
    const [seat] = rows;
    if (seat === undefined) throw seatNotFound(seatId);
    await tx
      .update(apiTokens)
      .set({ revokedAt: sql`now()` })
      .where(and(eq(apiTokens.seatId, seatId), isNull(apiTokens.revokedAt)));
    return await endMissions(context, tx, eq(missions.seatId, seatId), `the seat of the role ${seat.role} was unlinked`);
  });
  return { id: seatId, missions: await drive(context, ended) };
}

/**
 * Revokes a key. With a `successor`, a live key of the same seat, its missions go on under that; else what runs or waits under it is ended.
 */
export async function revokeSeatKey(
  context: ServerContext,
  key: { readonly workspaceId: string; readonly keyId: string; readonly successor?: string | undefined },
): Promise<SeatRevoked> {
  const { apiTokens, missions } = tables;
  const ended = await inTransaction(context.db, async (tx) => {
    const [row] = await tx
      .update(apiTokens)
      .set({ revokedAt: sql`now()` })
      .where(
        and(
          eq(apiTokens.id, key.keyId),
          eq(apiTokens.workspaceId, key.workspaceId),
          eq(apiTokens.role, 'seat'),
          isNull(apiTokens.revokedAt),
        ),
      )
      .returning({ seatId: apiTokens.seatId });
    if (row === undefined || row.seatId === null)
      throw new CodedError('seat_key_not_found', `there is no seat key ${key.keyId} that could be revoked`, {
        id: key.keyId,
        action: 'List the keys of each seat: firecrew seat list --json',
      });
    const ofKey = eq(missions.seatKeyId, key.keyId);
    if (key.successor === undefined) return await endMissions(context, tx, ofKey, `the key ${key.keyId} of its seat was revoked`);
    const [next] = await tx
      .select({ id: apiTokens.id })
      .from(apiTokens)
      .where(and(eq(apiTokens.id, key.successor), eq(apiTokens.seatId, row.seatId), isNull(apiTokens.revokedAt)))
      .for('share');
    if (next === undefined)
      throw new CodedError('bad_request', `${key.successor} is no live key of the same seat, so it cannot take over`, { id: key.keyId });
    await tx.update(missions).set({ seatKeyId: next.id }).where(ofKey);
    return [];
  });
  return { id: key.keyId, missions: await drive(context, ended) };
}

/** Marks all missions of a seat or key, so that none is placed, renewed or retried any more, and cancels those that live. */
async function endMissions(context: ServerContext, tx: Transaction, which: SQL, why: string): Promise<string[]> {
  const { missions } = tables;
  const detail = `${SEAT_REVOKED}: ${why}`;
  const live = await tx
    .select({ id: missions.id })
    .from(missions)
    .where(and(which, sql`${missions.state} in ('draft', 'running')`))
    // The order in which the placer locks missions, so that the two never wait for each other.
    .orderBy(asc(missions.createdAt), asc(missions.id));
  await tx
    .update(missions)
    .set({ seatRevoked: true })
    .where(and(which, sql`${missions.state} not in ('draft', 'running')`));
  for (const { id } of live) {
    const result = await context.store.applyIn(tx, id, { type: 'cancel', detail }, async (inner) => {
      await inner.update(missions).set({ seatRevoked: true }).where(eq(missions.id, id));
    });
    // One that ended in the moment before is marked all the same.
    if (!result.ok) await tx.update(missions).set({ seatRevoked: true }).where(eq(missions.id, id));
    else
      await context.store.tellIn(tx, id, [{ kind: 'notice', level: 'error', code: SEAT_REVOKED, message: `${why}: the mission is ended` }]);
  }
  return live.map(({ id }) => id);
}

/** Tells the nodes at once; each mission has a wake-up besides, for a node that is linked to another server or to none now. */
async function drive(context: ServerContext, ids: readonly string[]): Promise<string[]> {
  for (const id of ids) {
    await driveMission(context, id).catch((error: unknown) => {
      context.log.warn({ err: error, mission: id }, 'a mission of a revoked seat could not be driven and is woken up later');
    });
  }
  return [...ids];
}

function seatNotFound(id: string): CodedError {
  return new CodedError('seat_not_found', `there is no seat ${id}`, { id, action: 'List seats with: firecrew seat list' });
}
