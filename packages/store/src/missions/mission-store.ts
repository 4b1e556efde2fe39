import { CodedError, newId } from '@firecrew/base';
import {
  type MissionAggregate,
  type MissionFact,
  type MissionInput,
  type MissionStore,
  type RunPlanner,
  type StoreResult,
  stepMission,
} from '@firecrew/mission';
import type { CreateMission, MissionEventBody, TurnEvent } from '@firecrew/protocol';
import { and, eq, isNull, sql } from 'drizzle-orm';
import { apiTokens, attempts, events, logChunks, type MissionBase, missions, phases, seats, turns } from '../schema.ts';
import { type Database, EVENTS_CHANNEL, LOGS_CHANNEL, type Transaction } from './database.ts';
import { inTransaction } from './in-transaction.ts';
import { type MissionRow, readMission, writeMission } from './mission-rows.ts';

/** The full fencing token of an attempt. */
export interface AttemptKey {
  readonly turnId: string;
  readonly attempt: number;
  readonly epoch: number;
}

export interface MissionStoreOptions {
  readonly db: Database;
  readonly planner: RunPlanner;
  /** Queues the wake-up of a mission's driver within the transaction. */
  readonly wake: (missionId: string, tx: Transaction) => Promise<void>;
  /** Facts that end a mission as the event that is stored: the server adds delivery and denials. */
  readonly endOf: (
    tx: Transaction,
    row: MissionRow,
    mission: MissionAggregate,
  ) => Promise<Extract<MissionEventBody, { kind: 'mission.ended' }>>;
  /** Settles attempts of a seat that a change has ended, in its transaction, after all else of it is written: each attempt once. */
  readonly settleSeat?: (tx: Transaction, seatId: string, ended: readonly EndedAttempt[]) => Promise<void>;
}

/** An attempt that has just ended. */
export interface EndedAttempt {
  readonly turnId: string;
  readonly attempt: number;
}

export interface NewMission {
  readonly id: string;
  readonly workspaceId: string;
  readonly spec: CreateMission;
  readonly base: MissionBase | null;
  /** What is told right after that it was created. */
  readonly notices?: readonly MissionEventBody[];
  /** The seat and key it works under, where it is a seat's. */
  readonly seat?: { readonly id: string; readonly role: string; readonly keyId: string };
}

/** More that one change of a mission writes in the same transaction, given the state after the step. */
export type AlsoWrite = (tx: Transaction, mission: MissionAggregate) => Promise<void>;

/** What became of reported turn events. `acked` is the last one that is stored. */
export type RecordedEvents =
  | {
      readonly ok: true;
      readonly acked: number;
      /** The last event that was stored before: those after it, up to `acked`, are new. */
      readonly before: number;
    }
  | { readonly ok: false; readonly code: 'attempt_unknown' | 'attempt_stale' };

/** Missions in PostgreSQL: every change locks the row and writes state, events and wake-up in one transaction. */
export class PostgresMissionStore implements MissionStore {
  readonly #options: MissionStoreOptions;

  constructor(options: MissionStoreOptions) {
    this.#options = options;
  }

  /** Stores a draft with its phases. The caller launches it with `apply`. Throws `unauthorized` where its seat or key was revoked meanwhile. */
  async create({ seat, notices = [], ...mission }: NewMission): Promise<void> {
    await inTransaction(this.#options.db, async (tx) => {
      if (seat !== undefined) await demandSeat(tx, seat);
      const ofSeat = seat === undefined ? {} : { seatId: seat.id, seatKeyId: seat.keyId };
      await tx.insert(missions).values({ ...mission, ...ofSeat, title: mission.spec.title, state: 'draft' });
      const rows = mission.spec.phases.map((phase, position) => ({
        id: newId('phase'),
        missionId: mission.id,
        position,
        kind: phase.kind,
        state: 'pending' as const,
      }));
      await tx.insert(phases).values(rows);
      const created = { kind: 'mission.created', title: mission.spec.title, ...(seat === undefined ? {} : { seat }) } as const;
      await this.#append(tx, mission.id, [created, ...notices]);
    });
  }

  async load(missionId: string): Promise<MissionAggregate | undefined> {
    const found = await inTransaction(this.#options.db, (tx) => readMission(tx, missionId, false));
    return found?.mission;
  }

  async apply(missionId: string, input: MissionInput, also?: AlsoWrite): Promise<StoreResult> {
    return await inTransaction(this.#options.db, (tx) => this.applyIn(tx, missionId, input, also));
  }

  /** `apply` within a transaction of the caller. */
  async applyIn(tx: Transaction, missionId: string, input: MissionInput, also?: AlsoWrite): Promise<StoreResult> {
    const found = await readMission(tx, missionId, true);
    if (found === undefined) return { ok: false, code: 'mission_not_found' };
    const step = stepMission(found.mission, input, { planner: this.#options.planner, newId: (kind) => newId(kind) });
    if (!step.ok) return step;
    await writeMission(tx, found.mission, step.mission);
    const ended = step.facts.some((fact) => fact.kind === 'mission.closed');
    await tx
      .update(missions)
      .set({
        state: step.mission.state,
        cancelRequested: step.mission.cancelRequested,
        cancelDetail: step.mission.cancelDetail ?? null,
        ...(ended
          ? { endedAt: sql`greatest(now(), ${missions.createdAt})` }
          : step.mission.state === 'running'
            ? { endedAt: null, end: null }
            : {}),
      })
      .where(eq(missions.id, missionId));
    await also?.(tx, step.mission);
    if (found.row.seatId !== null) await this.#options.settleSeat?.(tx, found.row.seatId, endedBetween(found.mission, step.mission));
    const bodies = await this.#bodies(tx, found.row, step.mission, step.facts);
    const firstSeq = await this.#append(tx, missionId, bodies);
    await this.#options.wake(missionId, tx);
    return { ok: true, mission: step.mission, facts: step.facts, firstSeq };
  }

  /** Adds events that change no state. */
  async tell(missionId: string, bodies: readonly MissionEventBody[]): Promise<void> {
    await inTransaction(this.#options.db, (tx) => this.tellIn(tx, missionId, bodies));
  }

  async tellIn(tx: Transaction, missionId: string, bodies: readonly MissionEventBody[]): Promise<void> {
    await tx.select({ id: missions.id }).from(missions).where(eq(missions.id, missionId)).for('update');
    await this.#append(tx, missionId, bodies);
  }

  /** Stores reported events of an attempt: each once, in order, without gaps; those of a fenced attempt are refused. */
  async recordTurnEvents(key: AttemptKey, reported: readonly TurnEvent[]): Promise<RecordedEvents> {
    return await inTransaction(this.#options.db, async (tx) => {
      const place = await this.#lockAttempt(tx, key);
      if (place === undefined) return { ok: false, code: 'attempt_unknown' };
      if (place.newest !== key.attempt || place.state === 'ended') return { ok: false, code: 'attempt_stale' };
      let acked = place.lastSeq;
      const bodies: MissionEventBody[] = [];
      for (const event of reported) {
        if (event.seq !== acked + 1) continue;
        acked = event.seq;
        bodies.push({
          kind: 'turn.event',
          phaseId: place.phaseId,
          turnId: key.turnId,
          attempt: key.attempt,
          seq: event.seq,
          body: event.body,
        });
      }
      if (bodies.length > 0) {
        await tx.update(attempts).set({ lastSeq: acked }).where(sameAttempt(key));
        await this.#append(tx, place.missionId, bodies);
      }
      return { ok: true, acked, before: place.lastSeq };
    });
  }

  /** Appends log bytes at `offset`; bytes that are stored already are passed over, a gap is refused. Returns the new length. */
  async appendLog(
    key: AttemptKey,
    offset: number,
    bytes: Buffer,
  ): Promise<{ ok: true; length: number } | { ok: false; code: 'attempt_unknown' | 'attempt_stale' | 'log_gap'; length: number }> {
    if (bytes.length > 0 && (await this.#appendNext(key, offset, bytes))) return { ok: true, length: offset + bytes.length };
    return await inTransaction(this.#options.db, async (tx) => {
      // The attempt's own row is locked, not its mission's: log bytes change no state, and come many times a second.
      const [place] = await tx
        .select({ missionId: turns.missionId, newest: turns.attempt, state: attempts.state, logBytes: attempts.logBytes })
        .from(attempts)
        .innerJoin(turns, eq(turns.id, attempts.turnId))
        .where(sameAttempt(key))
        .for('update', { of: attempts });
      if (place === undefined) return { ok: false, code: 'attempt_unknown', length: 0 };
      if (place.newest !== key.attempt || place.state === 'ended') return { ok: false, code: 'attempt_stale', length: place.logBytes };
      if (offset > place.logBytes) return { ok: false, code: 'log_gap', length: place.logBytes };
      const fresh = bytes.subarray(place.logBytes - offset);
      if (fresh.length === 0) return { ok: true, length: place.logBytes };
      const length = place.logBytes + fresh.length;
      await tx.insert(logChunks).values({ turnId: key.turnId, attempt: key.attempt, at: place.logBytes, bytes: fresh });
      await tx.update(attempts).set({ logBytes: length }).where(sameAttempt(key));
      await tx.execute(sql`select pg_notify(${LOGS_CHANNEL}, ${place.missionId})`);
      return { ok: true, length };
    });
  }

  /**
   * Appends bytes that follow on what is stored, as nearly all do; false changes nothing. One statement for the bytes, their count and the
   * notice: each of them, and the transaction around them, is a round trip otherwise. Whoever waits for the row's lock looks again.
   */
  async #appendNext(key: AttemptKey, offset: number, bytes: Buffer): Promise<boolean> {
    const { rowCount } = await this.#options.db.execute(sql`
      with place as (
        update ${attempts} set log_bytes = ${offset + bytes.length} from ${turns}
        where attempts.turn_id = ${key.turnId} and attempts.attempt = ${key.attempt} and attempts.epoch = ${key.epoch}
          and attempts.state <> 'ended' and attempts.log_bytes = ${offset}
          and turns.id = attempts.turn_id and turns.attempt = attempts.attempt
        returning turns.mission_id
      ), piece as (
        insert into ${logChunks} (turn_id, attempt, at_offset, bytes) select ${key.turnId}, ${key.attempt}, ${offset}, ${bytes} from place
      )
      select pg_notify(${LOGS_CHANNEL}, mission_id) from place`);
    return rowCount === 1;
  }

  async #lockAttempt(tx: Transaction, key: AttemptKey) {
    const [turn] = await tx.select({ missionId: turns.missionId, phaseId: turns.phaseId }).from(turns).where(eq(turns.id, key.turnId));
    if (turn === undefined) return undefined;
    await tx.select({ id: missions.id }).from(missions).where(eq(missions.id, turn.missionId)).for('update');
    const [row] = await tx
      .select({ newest: turns.attempt, state: attempts.state, lastSeq: attempts.lastSeq, logBytes: attempts.logBytes })
      .from(attempts)
      .innerJoin(turns, eq(turns.id, attempts.turnId))
      .where(sameAttempt(key));
    return row === undefined ? undefined : { ...turn, ...row };
  }

  async #bodies(tx: Transaction, row: MissionRow, mission: MissionAggregate, facts: readonly MissionFact[]): Promise<MissionEventBody[]> {
    const bodies: MissionEventBody[] = [];
    for (const fact of facts) {
      if (fact.kind !== 'mission.closed') {
        bodies.push(fact);
        continue;
      }
      const body = await this.#options.endOf(tx, row, mission);
      await tx.update(missions).set({ end: body.end, waiting: null }).where(eq(missions.id, mission.id));
      bodies.push(body);
    }
    return bodies;
  }

  /** Gives the bodies their numbers. The mission's row is locked by the caller, or is new in this transaction. */
  async #append(tx: Transaction, missionId: string, bodies: readonly MissionEventBody[]): Promise<number> {
    const [row] = await tx
      .update(missions)
      .set({ version: sql`${missions.version} + 1`, nextEventSeq: sql`${missions.nextEventSeq} + ${bodies.length}` })
      .where(eq(missions.id, missionId))
      .returning({ next: missions.nextEventSeq });
    if (row === undefined) throw new CodedError('mission_not_found', `mission ${missionId} does not exist`, { id: missionId });
    const first = row.next - bodies.length;
    if (bodies.length > 0) {
      await tx.insert(events).values(bodies.map((body, index) => ({ missionId, seq: first + index, body })));
      await tx.execute(sql`select pg_notify(${EVENTS_CHANNEL}, ${missionId})`);
    }
    return first;
  }
}

/** Holds the rows of a seat and its key until the mission is stored: a revocation comes before, and is seen, or after, and sees it. */
async function demandSeat(tx: Transaction, { id, keyId }: { readonly id: string; readonly keyId: string }): Promise<void> {
  const held = await tx
    .select({ id: seats.id })
    .from(seats)
    .innerJoin(apiTokens, eq(apiTokens.seatId, seats.id))
    .where(and(eq(seats.id, id), seats.linked, eq(apiTokens.id, keyId), isNull(apiTokens.revokedAt)))
    .for('share');
  if (held.length === 0)
    throw new CodedError('unauthorized', `the key of the seat ${id} was revoked`, { id, action: 'Use a key that is accepted.' });
}

function sameAttempt(key: AttemptKey) {
  return and(eq(attempts.turnId, key.turnId), eq(attempts.attempt, key.attempt), eq(attempts.epoch, key.epoch));
}

/** Attempts that had not ended before a step, and have after it. */
function endedBetween(before: MissionAggregate, after: MissionAggregate): EndedAttempt[] {
  return after.turns.flatMap((turn) => {
    const old = before.turns.find((item) => item.id === turn.id);
    if (old === turn) return [];
    const wasOpen = (attempt: number): boolean => old?.attempts.find((item) => item.attempt === attempt)?.state !== 'ended';
    return turn.attempts.flatMap(({ attempt, state }) => (state === 'ended' && wasOpen(attempt) ? [{ turnId: turn.id, attempt }] : []));
  });
}
