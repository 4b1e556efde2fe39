import { compareBytes } from '../bytes.ts';

/** What one path of a tree is. A folder is an entry only while nothing lies below it. */
export type EntryKind = 'file' | 'executable' | 'link' | 'directory';

/** One path of a tree by content: names are bytes, relative, with single slashes and no dot components. */
export interface ManifestEntry {
  readonly path: Uint8Array;
  readonly kind: EntryKind;
  /** Bytes of the content; of the target text for a link; 0 for a folder. */
  readonly size: number;
  /** SHA-256 of the content (of the target text for a link) in lower-case hex; empty for a folder. */
  readonly sha256: string;
}

/** SHA-256 in lower-case hex, supplied by the caller. */
export type Sha256Hex = (bytes: Uint8Array) => string;

const SLASH = 0x2f;

/**
 * The order of a canonical tree: by path bytes, an empty folder counting as its path and a slash, so that the order of a
 * depth-first walk does not depend on what a folder turns out to hold.
 */
export function compareEntries(a: Pick<ManifestEntry, 'path' | 'kind'>, b: Pick<ManifestEntry, 'path' | 'kind'>): number {
  return compareBytes(orderKey(a), orderKey(b));
}

function orderKey(entry: Pick<ManifestEntry, 'path' | 'kind'>): Uint8Array {
  if (entry.kind !== 'directory') return entry.path;
  const key = new Uint8Array(entry.path.length + 1);
  key.set(entry.path);
  key[entry.path.length] = SLASH;
  return key;
}
