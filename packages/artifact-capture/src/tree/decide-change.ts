import type { ManifestDifference } from './compare-manifests.ts';
import type { ManifestEntry } from './manifest-entry.ts';

/** What of a difference a commit on top of the base would hold; `ignored_only` when nothing but new files that the base ignores is there. */
export type CommitChange = 'changed' | 'ignored_only' | 'none';

/**
 * Decides what of a difference between a base and a collected tree a commit would hold, by the rule of delivery: a new file counts unless the
 * base's ignore rules ignore it, a path of the base counts, and folders do not, since a commit holds none.
 */
export function decideChange(difference: ManifestDifference, isIgnored: (path: Uint8Array) => boolean): CommitChange {
  const { added, deleted, changed, modeChanged, typeChanged } = difference;
  const ofBase = [...changed, ...modeChanged, ...typeChanged].some(({ before }) => isFile(before)) || deleted.some(isFile);
  if (ofBase) return 'changed';
  const fresh = [...added, ...typeChanged.map(({ after }) => after)].filter(isFile);
  if (fresh.length === 0) return 'none';
  return fresh.every(({ path }) => isIgnored(path)) ? 'ignored_only' : 'changed';
}

function isFile(entry: ManifestEntry): boolean {
  return entry.kind !== 'directory';
}
