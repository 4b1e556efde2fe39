import { CodedError } from '@firecrew/base';
import type { Delivery } from '@firecrew/protocol';
import { inTransaction, tables } from '@firecrew/store';
import { and, eq, isNull } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { missionRow } from '../driver/mission-facts.ts';
import { pushDelivery } from './push-delivery.ts';

/**
 * A person approves a delivery that changes protected paths. The approval is claimed first and once; the push may be repeated.
 * Throws `nothing_to_approve`.
 */
export async function approveDelivery(context: ServerContext, missionId: string, phaseId: string | undefined, by: string): Promise<void> {
  const rows = await context.db.select().from(tables.phases).where(eq(tables.phases.missionId, missionId));
  // One under way waits for nobody yet: what it changes is not listed.
  const waiting = rows.filter((row) => row.delivery?.pushed === 'awaiting_approval' && row.deliveryState === 'done');
  const phase = waiting.find((row) => phaseId === undefined || row.id === phaseId);
  const delivery = phase?.delivery;
  if (phase === undefined || delivery == null) {
    throw new CodedError('nothing_to_approve', `mission ${missionId} has no delivery that waits for an approval`, { id: missionId });
  }
  await context.db
    .update(tables.phases)
    .set({ approvedBy: by })
    .where(and(eq(tables.phases.id, phase.id), isNull(tables.phases.approvedBy)));
  const row = await missionRow(context, missionId);
  const pushed = await pushDelivery(
    context,
    row,
    { branch: delivery.branch ?? '', commit: delivery.commit, protectedPaths: delivery.protectedPaths, unlisted: null },
    { approved: true },
  );
  const next: Delivery = { ...delivery, state: 'delivered', pushed: pushed.state, pushDetail: pushed.detail, branch: pushed.branch };
  await inTransaction(context.db, async (tx) => {
    // Locks the mission first, as every step of it does: two that lock in another order wait for one another.
    await context.store.tellIn(tx, missionId, [
      { kind: 'delivery.approved', phaseId: phase.id, by },
      { kind: 'delivery', delivery: next },
    ]);
    await tx.update(tables.phases).set({ delivery: next }).where(eq(tables.phases.id, phase.id));
    if (row.end?.delivery?.phaseId === phase.id)
      await tx
        .update(tables.missions)
        .set({ end: { ...row.end, delivery: next } })
        .where(eq(tables.missions.id, missionId));
  });
}
