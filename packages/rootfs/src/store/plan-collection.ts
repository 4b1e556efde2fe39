import type { ArtifactDigest } from './artifact-manifest.ts';

/** When each artifact was first seen unused, in milliseconds since 1970. */
export type UnusedSince = ReadonlyMap<ArtifactDigest, number>;

/** What one pass of the collector does. */
export interface CollectionPlan {
  readonly remove: readonly ArtifactDigest[];
  /** What the next pass is to know. */
  readonly unusedSince: UnusedSince;
}

/**
 * Decides what may go: an artifact that nobody uses now and that an earlier pass saw unused at least `graceMs` ago. One pass alone never
 * removes anything. A clock that was set back makes it wait longer, never shorter.
 */
export function planCollection(
  present: readonly ArtifactDigest[],
  inUse: ReadonlySet<ArtifactDigest>,
  before: UnusedSince,
  { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number },
): CollectionPlan {
  const remove: ArtifactDigest[] = [];
  const unusedSince = new Map<ArtifactDigest, number>();
  for (const id of present) {
    if (inUse.has(id)) continue;
    const since = before.get(id);
    // A time in the future is of a clock that was wrong: it counts from now.
    if (since === undefined || since > nowMs) unusedSince.set(id, nowMs);
    else if (nowMs - since < graceMs) unusedSince.set(id, since);
    else remove.push(id);
  }
  return { remove, unusedSince };
}
