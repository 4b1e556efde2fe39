import { byteKey } from '../bytes.ts';
import { compareEntries, type ManifestEntry } from './manifest-entry.ts';

/** How two trees differ, each list in canonical order; a path is in at most one list. */
export interface ManifestDifference {
  readonly added: readonly ManifestEntry[];
  /** The entries as they were. */
  readonly deleted: readonly ManifestEntry[];
  /** Same type, other content. */
  readonly changed: readonly ManifestChange[];
  /** Same content, the execute bit changed. */
  readonly modeChanged: readonly ManifestChange[];
  /** A file became a link, a link a folder, and so on. */
  readonly typeChanged: readonly ManifestChange[];
  readonly isEmpty: boolean;
}

/** One path before and after. */
export interface ManifestChange {
  readonly path: Uint8Array;
  readonly before: ManifestEntry;
  readonly after: ManifestEntry;
}

/** Compares two trees by path and content; what changed is decided from this, never from a guest's word. */
export function compareManifests(base: Iterable<ManifestEntry>, next: Iterable<ManifestEntry>): ManifestDifference {
  const before = new Map<string, ManifestEntry>();
  for (const entry of base) before.set(byteKey(entry.path), entry);
  const added: ManifestEntry[] = [];
  const changed: ManifestChange[] = [];
  const modeChanged: ManifestChange[] = [];
  const typeChanged: ManifestChange[] = [];
  for (const after of [...next].sort(compareEntries)) {
    const key = byteKey(after.path);
    const old = before.get(key);
    before.delete(key);
    if (old === undefined) added.push(after);
    else if (typeOf(old) !== typeOf(after)) typeChanged.push({ path: after.path, before: old, after });
    else if (old.sha256 !== after.sha256 || old.size !== after.size) changed.push({ path: after.path, before: old, after });
    else if (old.kind !== after.kind) modeChanged.push({ path: after.path, before: old, after });
  }
  const deleted = [...before.values()].sort(compareEntries);
  const count = added.length + deleted.length + changed.length + modeChanged.length + typeChanged.length;
  return { added, deleted, changed, modeChanged, typeChanged, isEmpty: count === 0 };
}

function typeOf(entry: ManifestEntry): string {
  return entry.kind === 'executable' ? 'file' : entry.kind;
}
