import { CodedError, parseId, type WorkspaceId } from '@firecrew/base';
import type { MissionAggregate, Phase, Turn } from '@firecrew/mission';
import type { CreateMission } from '@firecrew/protocol';
import { type Gate, planGate } from '@firecrew/stop-gate';
import { type MissionBase, tables } from '@firecrew/store';
import { and, asc, eq } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';

/** A tree with what is needed to send it to a node. */
export interface InputTree {
  readonly snapshotId: string;
  readonly blobDigest: string;
}

/** A mission's row, with its base, or `mission_not_found`. */
export async function missionRow(context: ServerContext, missionId: string) {
  const [row] = await context.db.select().from(tables.missions).where(eq(tables.missions.id, missionId));
  if (row === undefined) throw new CodedError('mission_not_found', `mission ${missionId} does not exist`, { id: missionId });
  return row;
}

/** The tree and commit a phase starts from: the delivered result of the last phase before it that delivered one, else the base. Without a repository no phase has a commit, so its tree alone travels on. */
export async function phaseInput(
  context: ServerContext,
  mission: MissionAggregate,
  base: MissionBase,
  phase: Phase,
): Promise<{ tree: InputTree; commit: string | null }> {
  const rows = await context.db
    .select()
    .from(tables.phases)
    .where(eq(tables.phases.missionId, mission.id))
    .orderBy(asc(tables.phases.position));
  let input = { tree: base.tree as InputTree, commit: base.commit };
  for (const row of rows) {
    if (row.position >= phase.position) break;
    const { delivery } = row;
    if (row.state !== 'completed' || delivery === null || row.resultTurn === null || row.resultAttempt === null) continue;
    if (delivery.commit === null && base.commit !== null) continue;
    const tree = mission.turns
      .find((turn) => turn.id === row.resultTurn)
      ?.attempts.find((item) => item.attempt === row.resultAttempt)?.tree;
    if (tree) input = { tree, commit: delivery.commit };
  }
  return input;
}

/** The tree a turn starts from: the result of the step before it in its run, else its phase's input. */
export function turnInput(mission: MissionAggregate, turn: Turn, input: InputTree): InputTree {
  const earlier = mission.turns.filter((item) => item.runId === turn.runId && item.step < turn.step).sort((a, b) => b.step - a.step)[0];
  return earlier?.attempts.findLast((item) => item.outcome?.kind === 'completed')?.tree ?? input;
}

/** Size of a stored blob in bytes. Throws `blob_not_found`: a tree that is not there fails the turn instead of looking empty. */
export async function blobSize(context: ServerContext, workspaceId: string, digest: string): Promise<number> {
  const blob = await context.blobs.open(workspaceIdOf(workspaceId), digest);
  blob.stream.destroy();
  return blob.size;
}

/** What must hold before a phase that was requested so may be green; undefined where nothing must. */
export function gateOf(request: CreateMission['phases'][number]): Gate | undefined {
  return planGate({ kind: request.kind, allowEmpty: request.allowEmpty, doneWhenCheck: request.doneWhenCheck ?? null });
}

/** A workspace id as it is stored, in the form the blob store takes. */
export function workspaceIdOf(text: string): WorkspaceId {
  const id = parseId('workspace', text);
  if (id === undefined) throw new CodedError('bad_request', `${JSON.stringify(text)} is not a workspace id`);
  return id;
}

export function samePhase(missionId: string, phaseId: string) {
  return and(eq(tables.phases.missionId, missionId), eq(tables.phases.id, phaseId));
}
