import { BASELINE_SETTLE_MS, MAX_HEALTH_AGE_MS, rememberBaseline } from '@firecrew/placement';
import { tables } from '@firecrew/store';
import { eq, sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { liveVmsOf } from './live-vms.ts';
import type { ConnectedNode } from './node-registry.ts';

/** Remembers what the host uses while it has no attempt: the floor of what it is charged later. */
export async function rememberIdle(context: Pick<ServerContext, 'db' | 'clock'>, node: ConnectedNode): Promise<void> {
  const { nodes, attempts } = tables;
  const [row] = await context.db.select({ known: nodes.idleBaselineMib }).from(nodes).where(eq(nodes.id, node.id));
  const [seen] = await context.db
    .select({
      open: sql<number>`count(*) filter (where ${attempts.state} <> 'ended')::int`,
      ended: sql<number>`count(*) filter (where ${attempts.state} = 'ended')::int`,
    })
    .from(attempts)
    .where(eq(attempts.nodeId, node.id));
  if (row === undefined || seen === undefined) return;
  const nowMs = context.clock();
  // Their number tells of a new end, as seen by this process: the times of the rows are those of another clock, which may be set anew.
  if (seen.ended > 0 && node.lastEnd?.count !== seen.ended) node.lastEnd = { count: seen.ended, atMs: nowMs };
  if (seen.open > 0 || node.health === null || node.healthAtMs === null) return;
  const idle = rememberBaseline({
    node: {
      health: { atMs: node.healthAtMs, memoryTotalMib: node.health.memoryTotalMib, memoryUsedMib: node.health.memoryUsedMib },
      live: liveVmsOf(node.vms),
      reserved: [],
      ...(row.known === null ? {} : { rememberedBaselineMib: row.known }),
    },
    nowMs,
    maxAgeMs: MAX_HEALTH_AGE_MS,
    settleMs: BASELINE_SETTLE_MS,
    ...(node.lastEnd === null ? {} : { lastVmEndedAtMs: node.lastEnd.atMs }),
  });
  if (idle !== undefined) await context.db.update(nodes).set({ idleBaselineMib: idle }).where(eq(nodes.id, node.id));
}
