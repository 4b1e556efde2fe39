import { CodedError } from '@firecrew/base';
import { type CheckState, planCommit } from '@firecrew/delivery';
import type { MissionAggregate } from '@firecrew/mission';
import { type MissionRow, tables } from '@firecrew/store';
import { type ImportedCommit, type MissionRepository, readManifestOfBlob } from '@firecrew/workspace';
import { asc, eq } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { phaseInput, workspaceIdOf } from '../driver/mission-facts.ts';
import { attemptRow } from './build-record.ts';
import type { Scratch } from './repository-cache.ts';

/** Whose result becomes a commit, and on top of what. */
export interface ResultPlace {
  readonly row: MissionRow;
  readonly phaseId: string;
  readonly turnId: string;
  readonly attempt: number;
  readonly verified: boolean;
  readonly input: Awaited<ReturnType<typeof phaseInput>>;
}

/** Commits the tree of an attempt on top of its phase's input, which is `unchanged` where nothing of it belongs in a commit; undefined where the trees are the same. The same place gives the same commit. */
export async function importResult(
  context: ServerContext,
  repository: MissionRepository,
  scratch: Scratch,
  place: ResultPlace,
): Promise<ImportedCommit | undefined> {
  const { row, input } = place;
  const attempt = await attemptRow(context, place.turnId, place.attempt);
  const { tree } = attempt;
  if (tree === null) throw new CodedError('tree_missing', `attempt ${place.turnId}.${place.attempt} left no tree`, { id: place.turnId });
  if (input.commit === null || tree.snapshotId === input.tree.snapshotId) return undefined;
  const workspaceId = workspaceIdOf(row.workspaceId);
  const name = `${place.turnId}.${place.attempt}`;
  const blobFile = await context.repositories.blobToFile(workspaceId, tree.blobDigest, scratch(`${name}.blob`));
  const baseFile = await context.repositories.blobToFile(workspaceId, input.tree.blobDigest, scratch(`${name}.base.blob`));
  const collected = await readManifestOfBlob(blobFile, { blobDigest: tree.blobDigest, snapshotId: tree.snapshotId });
  const before = await readManifestOfBlob(baseFile, { blobDigest: input.tree.blobDigest, snapshotId: input.tree.snapshotId });
  return await repository.importSnapshot({
    baseCommit: input.commit,
    baseManifest: before.entries,
    manifest: collected.entries,
    content: { blobFile },
    commit: planCommit({
      title: row.title,
      missionId: row.id,
      phaseId: place.phaseId,
      attempt: place.attempt,
      snapshotId: tree.snapshotId,
      check: checkState(place.verified, attempt.result?.verification),
      atSeconds: Math.floor((attempt.endedAt ?? row.createdAt).getTime() / 1000),
    }),
  });
}

/** Makes every delivered commit of a mission again, in order: what a rebuilt repository lacks. Throws `rebuild_mismatch`. */
export async function replayDeliveries(
  context: ServerContext,
  row: MissionRow,
  mission: MissionAggregate,
  repository: MissionRepository,
  scratch: Scratch,
): Promise<void> {
  if (row.base === null) return;
  const phases = await context.db
    .select()
    .from(tables.phases)
    .where(eq(tables.phases.missionId, row.id))
    .orderBy(asc(tables.phases.position));
  for (const stored of phases) {
    const { delivery, resultTurn, resultAttempt } = stored;
    const phase = mission.phases.find((item) => item.id === stored.id);
    if (delivery?.commit == null || resultTurn === null || resultAttempt === null || phase === undefined) continue;
    const input = await phaseInput(context, mission, row.base, phase);
    const place = { row, phaseId: stored.id, turnId: resultTurn, attempt: resultAttempt, verified: delivery.verified, input };
    const made = await importResult(context, repository, scratch, place);
    if (made?.commit !== delivery.commit) {
      throw new CodedError(
        'rebuild_mismatch',
        `the delivered commit ${delivery.commit} of mission ${row.id} was rebuilt as ${made?.commit ?? 'nothing'}`,
        {
          id: row.id,
        },
      );
    }
  }
}

/** What a commit and its delivery say of the check. */
export function checkState(verified: boolean, verification: string | undefined): CheckState {
  if (!verified) return 'unverified';
  return verification === 'verified' || verification === 'reported' ? verification : 'unverified';
}
