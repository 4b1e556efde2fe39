import type { TreeRef } from '@firecrew/mission';
import { type AttemptKey, tables } from '@firecrew/store';
import { and, desc, eq, sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { workspaceIdOf } from './mission-facts.ts';

/** Trees of an attempt that are looked at, newest first. */
const MAX_LOOKED_AT = 20;

/** The newest tree that an attempt reported and whose blob is here: what is left of it when its host is lost. */
export async function lastStoredTree(context: ServerContext, missionId: string, key: AttemptKey): Promise<TreeRef | null> {
  const [mission] = await context.db
    .select({ workspaceId: tables.missions.workspaceId })
    .from(tables.missions)
    .where(eq(tables.missions.id, missionId));
  if (mission === undefined) return null;
  const { events } = tables;
  const rows = await context.db
    .select({ body: events.body })
    .from(events)
    .where(
      and(
        eq(events.missionId, missionId),
        sql`${events.body}->>'kind' = 'turn.event'`,
        sql`${events.body}->>'turnId' = ${key.turnId}`,
        sql`(${events.body}->>'attempt')::int = ${key.attempt}`,
        sql`${events.body}->'body'->>'kind' in ('checkpoint', 'collected')`,
      ),
    )
    .orderBy(desc(events.seq))
    .limit(MAX_LOOKED_AT);
  for (const { body } of rows) {
    if (body.kind !== 'turn.event' || (body.body.kind !== 'checkpoint' && body.body.kind !== 'collected')) continue;
    const { snapshotId, blobDigest } = body.body.tree;
    if (await context.blobs.has(workspaceIdOf(mission.workspaceId), blobDigest)) return { snapshotId, blobDigest };
  }
  return null;
}
