import type { AttemptResult } from '@firecrew/protocol';
import { type AttemptKey, tables } from '@firecrew/store';
import { and, eq } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';

/** Stores what an attempt left behind and steps its mission, in one transaction. A result whose tree is not in the blob store is refused by the blob check of the upload before. */
export async function recordAttemptEnd(context: ServerContext, missionId: string, key: AttemptKey, result: AttemptResult): Promise<void> {
  const tree = result.tree === null ? null : { snapshotId: result.tree.snapshotId, blobDigest: result.tree.blobDigest };
  const verified =
    result.outcome.kind === 'completed' &&
    (result.verification === 'verified' || result.verification === 'reported' || result.verification === 'none');
  const input = { type: 'attempt_ended', ...key, outcome: result.outcome, detail: result.detail, tree, verified } as const;
  await context.store.apply(missionId, input, async (tx) => {
    await tx
      .update(tables.attempts)
      .set({ result })
      .where(and(eq(tables.attempts.turnId, key.turnId), eq(tables.attempts.attempt, key.attempt), eq(tables.attempts.epoch, key.epoch)));
    if (result.tree === null) return;
    const [mission] = await tx
      .select({ workspaceId: tables.missions.workspaceId })
      .from(tables.missions)
      .where(eq(tables.missions.id, missionId));
    if (mission === undefined) return;
    const row = {
      workspaceId: mission.workspaceId,
      snapshotId: result.tree.snapshotId,
      blobDigest: result.tree.blobDigest,
      bytes: result.tree.bytes,
    };
    await tx.insert(tables.snapshots).values(row).onConflictDoNothing();
  });
}
