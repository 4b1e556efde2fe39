import { byteKey, fromByteKey } from '../bytes.ts';
import { CaptureError } from '../capture-error.ts';
import { treeLimits } from './limits.ts';
import type { EntryKind, ManifestEntry, Sha256Hex } from './manifest-entry.ts';
import { normalisePath } from './normalise-path.ts';

/** First record of an encoded manifest; another format gets another name. */
export const MANIFEST_FORMAT = 'firecrew-manifest-1';

const CODE_OF: Record<EntryKind, string> = { file: '0644', executable: '0755', link: 'link', directory: 'tree' };
const DIGEST = /^[0-9a-f]{64}$/;
const PATH_LIMITS = treeLimits({ maxDepth: Number.MAX_SAFE_INTEGER });
const RECORD = /^(0644|0755|link|tree) (0|[1-9][0-9]{0,15}) ([0-9a-f]{64}|-) (.+)$/s;

/**
 * The canonical manifest: NUL-terminated records `mode SP size SP sha256 SP path`, sorted by `compareEntries`; the
 * mode is `0644`, `0755`, `link` or `tree` (an empty folder, size 0, digest `-`).
 * @throws CaptureError `malformed_manifest` when the entries are not a tree in canonical form (a path twice, `..`, a bad digest).
 */
export function encodeManifest(entries: Iterable<ManifestEntry>): Uint8Array {
  const keyed = Array.from(entries, (entry) => ({ key: byteKey(entry.path), entry }));
  for (const { key, entry } of keyed) checkEntry(entry, key);
  const sorted = keyed.map(({ key, entry }) => ({ key, entry, order: orderKey(key, entry.kind) }));
  sorted.sort((a, b) => compareKeys(a.order, b.order));
  checkTree(sorted);
  return fromByteKey(sorted.reduce((text, { key, entry }) => text + manifestRecord(key, entry), MANIFEST_START));
}

/** What a manifest begins with; one {@link manifestRecord} for each entry follows, in canonical order. */
export const MANIFEST_START = `${MANIFEST_FORMAT}\0`;

/** The record of an entry, one character for each byte, as is `key`, its path. Nothing is checked. */
export function manifestRecord(key: string, { kind, size, sha256 }: Pick<ManifestEntry, 'kind' | 'size' | 'sha256'>): string {
  return `${CODE_OF[kind]} ${size} ${kind === 'directory' ? '-' : sha256} ${key}\0`;
}

/**
 * Reads an encoded manifest, strictly: every record well-formed, in order, no path twice, none below another that is no folder.
 * @throws CaptureError `malformed_manifest`.
 */
export function decodeManifest(bytes: Uint8Array): ManifestEntry[] {
  const records = splitRecords(bytes);
  if (records.shift() !== MANIFEST_FORMAT) throw malformed('the format record is missing');
  const entries = records.map(decodeRecord);
  checkTree(entries.map(({ key, entry }) => ({ key, order: orderKey(key, entry.kind) })));
  return entries.map(({ entry }) => entry);
}

/** The id of a tree by content: the digest of its canonical manifest. */
export function snapshotIdOf(entries: Iterable<ManifestEntry>, sha256Hex: Sha256Hex): string {
  return sha256Hex(encodeManifest(entries));
}

function splitRecords(bytes: Uint8Array): string[] {
  if (bytes.at(-1) !== 0) throw malformed('the last record has no end');
  const records: string[] = [];
  let from = 0;
  for (let at = bytes.indexOf(0); at !== -1; at = bytes.indexOf(0, from)) {
    records.push(byteKey(bytes.subarray(from, at)));
    from = at + 1;
  }
  return records;
}

function decodeRecord(record: string): { readonly key: string; readonly entry: ManifestEntry } {
  const [, code, size, digest, key] = RECORD.exec(record) ?? [];
  if (code === undefined || size === undefined || digest === undefined || key === undefined) throw malformed('a record is not well-formed');
  const kind = code === '0644' ? 'file' : code === '0755' ? 'executable' : code === 'link' ? 'link' : 'directory';
  const isFolder = kind === 'directory';
  if (isFolder !== (digest === '-')) throw malformed('size or digest do not fit the type');
  const entry: ManifestEntry = { path: fromByteKey(key), kind, size: Number(size), sha256: isFolder ? '' : digest };
  checkEntry(entry, key);
  return { key, entry };
}

/** What holds for an entry by itself. */
function checkEntry({ path, kind, size, sha256 }: ManifestEntry, key: string): void {
  const fits = kind === 'directory' ? size === 0 : DIGEST.test(sha256);
  if (!fits || !Number.isSafeInteger(size) || size < 0) throw malformed('size or digest do not fit the type');
  if (key === '' || key.includes('\0')) throw malformed('a record is not well-formed');
  if (normalisePath(path, PATH_LIMITS).key !== key) throw malformed('a path is not in canonical form');
}

/** What holds between the entries, which come in the order they are to be in. */
function checkTree(entries: readonly { readonly key: string; readonly order: string }[]): void {
  const names = new Set<string>();
  let previous = '';
  for (const { key, order } of entries) {
    if (order <= previous) throw malformed('the records are not in order');
    previous = order;
    names.add(key);
  }
  if (names.size !== entries.length) throw malformed('a path is there twice');
  let checked = '';
  for (const name of names) {
    const folder = name.slice(0, Math.max(0, name.lastIndexOf('/')));
    // What holds for one name of a folder holds for the next.
    if (folder === checked) continue;
    checked = folder;
    for (let at = name.lastIndexOf('/'); at > 0; at = name.lastIndexOf('/', at - 1)) {
      if (names.has(name.slice(0, at))) throw malformed('a path lies below an entry');
    }
  }
}

/** The order of `compareEntries` as texts of one character for each byte. */
function orderKey(key: string, kind: EntryKind): string {
  return kind === 'directory' ? `${key}/` : key;
}

function compareKeys(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function malformed(what: string): CaptureError {
  return new CaptureError('malformed_manifest', `the manifest is refused: ${what}`);
}
