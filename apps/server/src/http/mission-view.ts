import { CodedError } from '@firecrew/base';
import {
  type MissionSummary,
  type MissionView,
  missionSummarySchema,
  missionViewSchema,
  type PolicyWarning,
  type SeatRef,
} from '@firecrew/protocol';
import { inTransaction, type MissionRow, readMission, tables } from '@firecrew/store';
import { and, asc, desc, eq, sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';

/** The seat that a mission works under. */
export async function seatOf(context: ServerContext, row: Pick<MissionRow, 'seatId' | 'seatKeyId'>): Promise<SeatRef | null> {
  if (row.seatId === null || row.seatKeyId === null) return null;
  const [seat] = await context.db.select({ role: tables.seats.role }).from(tables.seats).where(eq(tables.seats.id, row.seatId));
  return seat === undefined ? null : { id: row.seatId, role: seat.role, keyId: row.seatKeyId };
}

const iso = (date: Date | null) => date?.toISOString() ?? null;

/** A mission as a line of a list. */
export async function missionSummary(context: ServerContext, row: MissionRow): Promise<MissionSummary> {
  const [last] = await context.db
    .select({ delivery: tables.phases.delivery, outcome: tables.phases.outcome })
    .from(tables.phases)
    .where(eq(tables.phases.missionId, row.id))
    .orderBy(desc(tables.phases.position))
    .limit(1);
  return missionSummarySchema.parse({
    id: row.id,
    title: row.title,
    state: row.state,
    createdAt: row.createdAt.toISOString(),
    endedAt: iso(row.endedAt),
    branch: row.end?.delivery?.branch ?? last?.delivery?.branch ?? null,
    outcome: row.end?.outcome ?? last?.outcome ?? null,
    ...(row.spec.learn === undefined ? {} : { learning: row.spec.learn }),
    seat: await seatOf(context, row),
  });
}

/** A mission with its phases and attempts. */
export async function missionView(context: ServerContext, id: string): Promise<MissionView> {
  const found = await inTransaction(context.db, (tx) => readMission(tx, id, false));
  if (found === undefined) throw new CodedError('mission_not_found', `mission ${id} does not exist`, { id });
  const { row, mission } = found;
  const rows = await context.db.select().from(tables.phases).where(eq(tables.phases.missionId, id)).orderBy(asc(tables.phases.position));
  const warnings = await warningsOf(context, id);
  const attempts = await context.db
    .select({ attempt: tables.attempts, phaseId: tables.turns.phaseId, runId: tables.turns.runId })
    .from(tables.attempts)
    .innerJoin(tables.turns, eq(tables.turns.id, tables.attempts.turnId))
    .where(eq(tables.turns.missionId, id))
    .orderBy(asc(tables.turns.ordinal), asc(tables.attempts.attempt));
  return missionViewSchema.parse({
    ...(await missionSummary(context, row)),
    version: row.version,
    baseCommit: row.base?.commit ?? null,
    baseSynthetic: row.base?.synthetic ?? false,
    repository: row.spec.repository.kind,
    waiting: row.waiting,
    end: row.end,
    ...(warnings.length === 0 ? {} : { warnings }),
    phases: rows.map((phase) => ({
      id: phase.id,
      position: phase.position,
      kind: phase.kind,
      task: row.spec.phases[phase.position]?.task ?? '',
      state: mission.phases.find((item) => item.id === phase.id)?.state ?? phase.state,
      iteration: phase.iteration,
      outcome: phase.outcome,
      delivery: phase.delivery,
      attempts: attempts.flatMap(({ attempt, phaseId, runId }) =>
        phaseId === phase.id
          ? [
              {
                runId,
                turnId: attempt.turnId,
                attempt: attempt.attempt,
                nodeId: attempt.nodeId,
                state: attempt.state,
                outcome: attempt.outcome,
                detail: attempt.detail,
                startedAt: iso(attempt.startedAt),
                endedAt: iso(attempt.endedAt),
              },
            ]
          : [],
      ),
    })),
  });
}

/** What the policy left out when the mission was created, as its timeline tells it. */
async function warningsOf(context: ServerContext, id: string): Promise<PolicyWarning[]> {
  const { events } = tables;
  const rows = await context.db
    .select({ body: events.body })
    .from(events)
    .where(and(eq(events.missionId, id), sql`${events.body}->>'kind' = 'notice'`, sql`${events.body} ? 'warning'`))
    .orderBy(asc(events.seq));
  return rows.flatMap(({ body }) => (body.kind === 'notice' && body.warning !== undefined ? [body.warning] : []));
}
