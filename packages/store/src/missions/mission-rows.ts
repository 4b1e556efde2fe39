import type { Attempt, MissionAggregate, Phase, Run, Turn } from '@firecrew/mission';
import { asc, eq, inArray, sql } from 'drizzle-orm';
import { attempts, missions, phases, runs, turns } from '../schema.ts';
import type { Transaction } from './database.ts';

export type MissionRow = typeof missions.$inferSelect;
type PhaseRow = typeof phases.$inferSelect;
type RunRow = typeof runs.$inferSelect;
type TurnRow = typeof turns.$inferSelect;
type AttemptRow = typeof attempts.$inferSelect;

/** Reads a mission with everything that decides its next step; with `lock` no other change of it can run meanwhile. */
export async function readMission(
  tx: Transaction,
  id: string,
  lock: boolean,
): Promise<{ row: MissionRow; mission: MissionAggregate } | undefined> {
  const query = tx.select().from(missions).where(eq(missions.id, id));
  const [row] = lock ? await query.for('update') : await query;
  if (row === undefined) return undefined;
  const phaseRows = await tx.select().from(phases).where(eq(phases.missionId, id)).orderBy(asc(phases.position));
  const runIds = phaseRows.flatMap((phase) => (phase.runId === null ? [] : [phase.runId]));
  const runRows = runIds.length === 0 ? [] : await tx.select().from(runs).where(inArray(runs.id, runIds));
  const turnRows = await tx.select().from(turns).where(eq(turns.missionId, id)).orderBy(asc(turns.ordinal));
  const turnIds = turnRows.map((turn) => turn.id);
  const attemptRows =
    turnIds.length === 0 ? [] : await tx.select().from(attempts).where(inArray(attempts.turnId, turnIds)).orderBy(asc(attempts.attempt));
  const mission: MissionAggregate = {
    id,
    state: row.state,
    cancelRequested: row.cancelRequested,
    ...(row.cancelDetail === null ? {} : { cancelDetail: row.cancelDetail }),
    phases: phaseRows.map((phase) => toPhase(phase, runRows)),
    turns: turnRows.map((turn) => toTurn(turn, attemptRows)),
  };
  return { row, mission };
}

function toPhase(row: PhaseRow, runRows: readonly RunRow[]): Phase {
  const run = runRows.find((item) => item.id === row.runId);
  return {
    id: row.id,
    position: row.position,
    kind: row.kind,
    state: row.state,
    iteration: row.iteration,
    run: run === undefined ? null : { id: run.id, state: run.state, checkpoint: run.checkpoint },
    outcome: row.outcome,
    detail: row.detail,
    delivery: row.deliveryState,
    deliveryFailed: row.deliveryFailed,
    result: row.resultTurn === null || row.resultAttempt === null ? null : { turnId: row.resultTurn, attempt: row.resultAttempt },
  };
}

function toTurn(row: TurnRow, attemptRows: readonly AttemptRow[]): Turn {
  const own = attemptRows.filter((item) => item.turnId === row.id);
  return {
    id: row.id,
    phaseId: row.phaseId,
    runId: row.runId,
    step: row.step,
    graphNode: row.graphNode,
    state: row.state,
    attempt: row.attempt,
    tries: row.tries,
    attempts: own.map(toAttempt),
  };
}

function toAttempt(row: AttemptRow): Attempt {
  return {
    attempt: row.attempt,
    epoch: row.epoch,
    nodeId: row.nodeId,
    state: row.state,
    outcome: row.outcome,
    detail: row.detail,
    tree: row.tree,
    verified: row.verified,
  };
}

/** Writes what differs between `before` and `after`. Parts that the step did not touch are the same objects, and cost nothing. */
export async function writeMission(tx: Transaction, before: MissionAggregate, after: MissionAggregate): Promise<void> {
  for (const phase of after.phases) {
    const old = before.phases.find((item) => item.id === phase.id);
    if (old === phase) continue;
    if (phase.run !== null && phase.run !== old?.run) await writeRun(tx, after.id, phase.id, phase.run);
    await tx.update(phases).set(phaseColumns(phase)).where(eq(phases.id, phase.id));
  }
  for (const [ordinal, turn] of after.turns.entries()) {
    const old = before.turns.find((item) => item.id === turn.id);
    if (old === turn) continue;
    const columns = { state: turn.state, attempt: turn.attempt, tries: turn.tries };
    const fixed = {
      id: turn.id,
      missionId: after.id,
      phaseId: turn.phaseId,
      runId: turn.runId,
      step: turn.step,
      graphNode: turn.graphNode,
      ordinal,
    };
    await tx
      .insert(turns)
      .values({ ...fixed, ...columns })
      .onConflictDoUpdate({ target: turns.id, set: columns });
    await writeAttempts(tx, turn, old);
  }
}

async function writeRun(tx: Transaction, missionId: string, phaseId: string, run: Run): Promise<void> {
  const columns = { state: run.state, checkpoint: run.checkpoint };
  await tx
    .insert(runs)
    .values({ id: run.id, missionId, phaseId, ...columns })
    .onConflictDoUpdate({ target: runs.id, set: columns });
}

function phaseColumns(phase: Phase): Partial<PhaseRow> {
  return {
    state: phase.state,
    iteration: phase.iteration,
    outcome: phase.outcome,
    detail: phase.detail,
    deliveryState: phase.delivery,
    deliveryFailed: phase.deliveryFailed,
    resultTurn: phase.result?.turnId ?? null,
    resultAttempt: phase.result?.attempt ?? null,
    runId: phase.run?.id ?? null,
  };
}

async function writeAttempts(tx: Transaction, turn: Turn, old: Turn | undefined): Promise<void> {
  for (const item of turn.attempts) {
    if (old?.attempts.includes(item)) continue;
    const columns = {
      state: item.state,
      outcome: item.outcome,
      detail: item.detail,
      tree: item.tree,
      verified: item.verified,
    };
    // The database's clock, which the start was read from too; never before that, also where it was set back since.
    const isEnded = item.state === 'ended';
    const endedAt = isEnded ? sql`greatest(now(), ${attempts.startedAt})` : null;
    const fixed = { turnId: turn.id, attempt: item.attempt, epoch: item.epoch, nodeId: item.nodeId };
    await tx
      .insert(attempts)
      .values({ ...fixed, ...columns, endedAt: isEnded ? sql`now()` : null })
      .onConflictDoUpdate({ target: [attempts.turnId, attempts.attempt], set: { ...columns, endedAt } });
  }
}
