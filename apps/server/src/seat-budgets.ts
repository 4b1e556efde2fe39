import { type BudgetAmount, type BudgetCap, chargeAttempt, type SeatBudget } from '@firecrew/placement';
import type { SeatAttempt, SeatBudgetChange, SeatBudgetView, SeatUse } from '@firecrew/protocol';
import { type Database, type EndedAttempt, type Transaction, tables } from '@firecrew/store';
import { and, desc, eq, inArray, type SQL, sql } from 'drizzle-orm';

type BudgetRow = NonNullable<(typeof tables.seats.$inferSelect)['budget']>;

const MICROS = 1_000_000;
const UNBOUNDED: BudgetCap = { tokens: null, micros: null };
const NOTHING: BudgetAmount = { tokens: 0, micros: 0 };
const NO_BUDGET: BudgetRow = { turn: UNBOUNDED, day: UNBOUNDED, total: UNBOUNDED };
/** A turn counts for the day on which it was placed, by the clock of the database. */
const TODAY = sql`(now() at time zone 'UTC')::date`;

/** What seats have used and what is held of them, by the id of the seat. */
interface SeatNumbers {
  readonly used: { readonly day: BudgetAmount; readonly total: BudgetAmount };
  readonly held: { readonly day: BudgetAmount; readonly total: BudgetAmount };
  readonly attempts: number;
}

/** Reads the numbers of seats. What is held is read first: an attempt that ends in between is counted twice for once, and never missed. */
export async function readSeatNumbers(db: Database | Transaction, seatIds: readonly string[]): Promise<(seatId: string) => SeatNumbers> {
  const { attempts, missions, seatUse, turns } = tables;
  if (seatIds.length === 0) return () => ({ used: { day: NOTHING, total: NOTHING }, held: { day: NOTHING, total: NOTHING }, attempts: 0 });
  const given = (unit: keyof BudgetAmount, when: SQL = sql`true`) =>
    sql<number>`coalesce(sum((${attempts.seatGrant}->>${sql.raw(`'${unit}'`)})::bigint) filter (where ${when}), 0)::float8`;
  const isToday = sql`(${attempts.startedAt} at time zone 'UTC')::date = ${TODAY}`;
  const held = await db
    .select({
      seatId: missions.seatId,
      tokens: given('tokens'),
      micros: given('micros'),
      dayTokens: given('tokens', isToday),
      dayMicros: given('micros', isToday),
    })
    .from(attempts)
    .innerJoin(turns, eq(turns.id, attempts.turnId))
    .innerJoin(missions, eq(missions.id, turns.missionId))
    .where(and(inArray(missions.seatId, [...seatIds]), sql`${attempts.state} <> 'ended'`))
    .groupBy(missions.seatId);
  const charged = (column: typeof seatUse.tokens | typeof seatUse.micros | typeof seatUse.attempts, when: SQL = sql`true`) =>
    sql<number>`coalesce(sum(${column}) filter (where ${when}), 0)::float8`;
  const ofToday = sql`${seatUse.day} = ${TODAY}`;
  const used = await db
    .select({
      seatId: seatUse.seatId,
      attempts: charged(seatUse.attempts),
      tokens: charged(seatUse.tokens),
      micros: charged(seatUse.micros),
      dayTokens: charged(seatUse.tokens, ofToday),
      dayMicros: charged(seatUse.micros, ofToday),
    })
    .from(seatUse)
    .where(inArray(seatUse.seatId, [...seatIds]))
    .groupBy(seatUse.seatId);
  return (seatId) => {
    const spent = used.find((row) => row.seatId === seatId);
    return { used: both(spent), held: both(held.find((row) => row.seatId === seatId)), attempts: spent?.attempts ?? 0 };
  };
}

function both(
  row: { readonly tokens: number; readonly micros: number; readonly dayTokens: number; readonly dayMicros: number } | undefined,
) {
  if (row === undefined) return { day: NOTHING, total: NOTHING };
  return { day: { tokens: row.dayTokens, micros: row.dayMicros }, total: { tokens: row.tokens, micros: row.micros } };
}

/** The budget of a seat as placement judges it; undefined where it bounds nothing. */
export function budgetOf(row: BudgetRow | null, { used, held }: SeatNumbers): SeatBudget | undefined {
  if (row === null) return undefined;
  const bounds = [row.turn, row.day, row.total].some((cap) => cap.tokens !== null || cap.micros !== null);
  return bounds ? { ...row, used, held } : undefined;
}

/** Charges a seat for attempts that have ended: each once, in the transaction that ended it. */
export async function settleSeat(tx: Transaction, seatId: string, ended: readonly EndedAttempt[]): Promise<void> {
  const { attempts, seatUse } = tables;
  for (const { turnId, attempt } of ended) {
    const which = and(eq(attempts.turnId, turnId), eq(attempts.attempt, attempt));
    const day = sql<string>`(${attempts.startedAt} at time zone 'UTC')::date::text`;
    const [row] = await tx
      .select({ grant: attempts.seatGrant, result: attempts.result, outcome: attempts.outcome, day })
      .from(attempts)
      .where(which);
    if (row === undefined) continue;
    const { model } = row.result ?? {};
    const reported =
      row.result === null ? {} : { reported: model === undefined ? null : { tokens: model.chargedTokens, micros: model.chargedMicros } };
    const charge = chargeAttempt({ grant: row.grant, outcome: row.outcome?.kind ?? '', ...reported });
    await tx.update(attempts).set({ seatCharge: charge }).where(which);
    await tx
      .insert(seatUse)
      .values({ seatId, day: row.day, attempts: 1, ...charge })
      .onConflictDoUpdate({
        target: [seatUse.seatId, seatUse.day],
        set: {
          attempts: sql`${seatUse.attempts} + 1`,
          tokens: sql`${seatUse.tokens} + ${charge.tokens}`,
          micros: sql`${seatUse.micros} + ${charge.micros}`,
        },
      });
  }
}

/** A stored budget with changes; what they leave out stays. */
export function changeBudget(row: BudgetRow | null, change: SeatBudgetChange | undefined): BudgetRow | null {
  if (change === undefined) return row;
  const old = row ?? NO_BUDGET;
  const micros = (money: number | null | undefined, before: number | null): number | null =>
    money === undefined ? before : money === null ? null : Math.round(money * MICROS);
  const cap = (before: BudgetCap, tokens: number | null | undefined, money: number | null | undefined): BudgetCap => ({
    tokens: tokens === undefined ? before.tokens : tokens,
    micros: micros(money, before.micros),
  });
  return {
    turn: cap(old.turn, change.turnTokens, change.turnMoney),
    day: cap(old.day, change.dayTokens, change.dayMoney),
    total: cap(old.total, change.totalTokens, change.totalMoney),
  };
}

export function budgetView(row: BudgetRow | null): SeatBudgetView {
  const { turn, day, total } = row ?? NO_BUDGET;
  return {
    turnTokens: turn.tokens,
    dayTokens: day.tokens,
    totalTokens: total.tokens,
    turnMoney: moneyOf(turn.micros),
    dayMoney: moneyOf(day.micros),
    totalMoney: moneyOf(total.micros),
  };
}

export function useView({ used, held, attempts }: SeatNumbers): SeatUse {
  const spent = ({ tokens, micros }: BudgetAmount) => ({ tokens, money: micros / MICROS });
  return { day: spent(used.day), total: spent(used.total), held: spent(held.total), attempts };
}

/** The newest attempts of a seat, newest first, with what each was given and charged with. */
export async function seatAttempts(db: Database, seatId: string, limit: number): Promise<SeatAttempt[]> {
  const { attempts, missions, turns } = tables;
  const rows = await db
    .select({ missionId: missions.id, row: attempts })
    .from(attempts)
    .innerJoin(turns, eq(turns.id, attempts.turnId))
    .innerJoin(missions, eq(missions.id, turns.missionId))
    .where(eq(missions.seatId, seatId))
    .orderBy(desc(attempts.startedAt), desc(attempts.turnId), desc(attempts.attempt))
    .limit(limit);
  return rows.map(({ missionId, row }) => ({
    missionId,
    turnId: row.turnId,
    attempt: row.attempt,
    state: row.state,
    outcome: row.outcome?.kind ?? null,
    startedAt: row.startedAt.toISOString(),
    grant: row.seatGrant === null ? null : { tokens: row.seatGrant.tokens, money: moneyOf(row.seatGrant.micros) },
    charge: row.seatCharge === null ? null : { tokens: row.seatCharge.tokens, money: row.seatCharge.micros / MICROS },
  }));
}

function moneyOf(micros: number | null): number | null {
  return micros === null ? null : micros / MICROS;
}
