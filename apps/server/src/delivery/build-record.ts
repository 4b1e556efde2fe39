import { CodedError } from '@firecrew/base';
import type { MissionAction, Phase } from '@firecrew/mission';
import { type Delivery, GENERATION, type RunRecord, runRecordSchema } from '@firecrew/protocol';
import { type MissionRow, tables } from '@firecrew/store';
import { and, eq } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { seatOf } from '../http/mission-view.ts';

/** The row of an attempt, or `attempt_unknown`. */
export async function attemptRow(context: ServerContext, turnId: string, attempt: number) {
  const [row] = await context.db
    .select()
    .from(tables.attempts)
    .where(and(eq(tables.attempts.turnId, turnId), eq(tables.attempts.attempt, attempt)));
  if (row === undefined) throw new CodedError('attempt_unknown', `attempt ${turnId}.${attempt} does not exist`, { id: turnId });
  return row;
}

/** The statement of one run: what was asked, what was done, what was checked, and what left. */
export async function buildRecord(
  context: ServerContext,
  row: MissionRow,
  phase: Phase,
  action: Extract<MissionAction, { type: 'deliver' }>,
  delivery: Delivery,
): Promise<RunRecord> {
  const attempt = await attemptRow(context, action.turnId, action.attempt);
  const { spec, base } = row;
  const request = spec.phases[phase.position];
  if (request === undefined || base === null || phase.run === null)
    throw new CodedError('base_missing', `phase ${phase.id} cannot be described`, { id: phase.id });
  const { result } = attempt;
  const seat = await seatOf(context, row);
  const ended = (attempt.endedAt ?? new Date(row.createdAt)).toISOString();
  return runRecordSchema.parse({
    generation: GENERATION,
    missionId: row.id,
    phaseId: phase.id,
    runId: phase.run.id,
    turnId: action.turnId,
    attempt: action.attempt,
    epoch: attempt.epoch,
    nodeId: attempt.nodeId,
    ...(seat === null ? {} : { seat }),
    ...(spec.learn === undefined ? {} : { learning: spec.learn }),
    task: request.task,
    agentCommand: spec.agent.command,
    backend: spec.agent.backend,
    driver: attempt.demand?.driver ?? spec.driver ?? context.config.driverFloor,
    isolation: result?.isolation ?? 'none',
    base: {
      commit: base.commit,
      snapshotId: base.tree.snapshotId,
      synthetic: base.synthetic,
      includedSecrets: spec.repository.kind === 'upload' ? spec.repository.includedSecrets : [],
    },
    check:
      request.doneWhenCheck === undefined
        ? null
        : { command: request.doneWhenCheck, verification: result?.verification ?? 'none', inputsChanged: result?.checkInputsChanged ?? [] },
    setup:
      request.setup === undefined
        ? null
        : { command: request.setup, ...(spec.setupLayerFiles === undefined ? {} : { layerFiles: spec.setupLayerFiles }) },
    rounds: result?.rounds ?? [],
    egress: {
      allow: spec.egress.allow,
      setupAllow: spec.egress.setupAllow,
      addressRules: spec.egress.addressRules,
      summary: result?.egress ?? { allowed: [], denied: [] },
    },
    ...(result?.model === undefined ? {} : { model: result.model }),
    tree: result?.tree ?? null,
    outcome: attempt.outcome ?? phase.outcome ?? { kind: 'uncollected' },
    detail: attempt.detail,
    delivery,
    startedAt: attempt.startedAt.toISOString(),
    endedAt: ended,
  });
}
