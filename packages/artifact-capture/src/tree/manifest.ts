import { byteKey, concatBytes, fromByteKey, utf8 } from '../bytes.ts';
import { CaptureError } from '../capture-error.ts';
import { treeLimits } from './limits.ts';
import { compareEntries, type EntryKind, type ManifestEntry, type Sha256Hex } from './manifest-entry.ts';
import { normalisePath } from './normalise-path.ts';

/** First record of an encoded manifest; another format gets another name. */
export const MANIFEST_FORMAT = 'firecrew-manifest-1';

const CODE_OF: Record<EntryKind, string> = { file: '0644', executable: '0755', link: 'link', directory: 'tree' };
const RECORD = /^(0644|0755|link|tree) (0|[1-9][0-9]{0,15}) ([0-9a-f]{64}|-) (.+)$/s;

/**
 * The canonical manifest: NUL-terminated records `mode SP size SP sha256 SP path`, sorted by {@link compareEntries}; the
 * mode is `0644`, `0755`, `link` or `tree` (an empty folder, size 0, digest `-`).
 * @throws CaptureError `malformed_manifest` when the entries are not a tree in canonical form (a path twice, `..`, a bad digest).
 */
export function encodeManifest(entries: Iterable<ManifestEntry>): Uint8Array {
  const sorted = [...entries].sort(compareEntries);
  const parts: Uint8Array[] = [utf8(`${MANIFEST_FORMAT}\0`)];
  const nul = new Uint8Array(1);
  for (const entry of sorted) {
    const digest = entry.kind === 'directory' ? '-' : entry.sha256;
    parts.push(utf8(`${CODE_OF[entry.kind]} ${entry.size} ${digest} `), entry.path, nul);
  }
  const bytes = concatBytes(parts);
  decodeManifest(bytes);
  return bytes;
}

/**
 * Reads an encoded manifest, strictly: every record well-formed, in order, no path twice, none below another that is no folder.
 * @throws CaptureError `malformed_manifest`.
 */
export function decodeManifest(bytes: Uint8Array): ManifestEntry[] {
  const records = splitRecords(bytes);
  if (records.shift() !== MANIFEST_FORMAT) throw malformed('the format record is missing');
  const entries = records.map(decodeRecord);
  checkTree(entries);
  return entries;
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

function decodeRecord(record: string): ManifestEntry {
  const [, code, size, digest, name] = RECORD.exec(record) ?? [];
  if (code === undefined || size === undefined || digest === undefined || name === undefined)
    throw malformed('a record is not well-formed');
  const kind = code === '0644' ? 'file' : code === '0755' ? 'executable' : code === 'link' ? 'link' : 'directory';
  const isFolder = kind === 'directory';
  if (isFolder !== (digest === '-') || (isFolder && size !== '0') || !Number.isSafeInteger(Number(size))) {
    throw malformed('size or digest do not fit the type');
  }
  const path = fromByteKey(name);
  const normal = normalisePath(path, treeLimits({ maxDepth: Number.MAX_SAFE_INTEGER }));
  if (normal.path.length !== path.length) throw malformed('a path is not in canonical form');
  return { path, kind, size: Number(size), sha256: isFolder ? '' : digest };
}

function checkTree(entries: readonly ManifestEntry[]): void {
  const names = new Set<string>();
  let previous: ManifestEntry | undefined;
  for (const entry of entries) {
    if (previous !== undefined && compareEntries(previous, entry) >= 0) throw malformed('the records are not in order');
    names.add(byteKey(entry.path));
    previous = entry;
  }
  if (names.size !== entries.length) throw malformed('a path is there twice');
  for (const name of names) {
    for (let at = name.lastIndexOf('/'); at > 0; at = name.lastIndexOf('/', at - 1)) {
      if (names.has(name.slice(0, at))) throw malformed('a path lies below an entry');
    }
  }
}

function malformed(what: string): CaptureError {
  return new CaptureError('malformed_manifest', `the manifest is refused: ${what}`);
}
