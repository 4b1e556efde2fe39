import { createHash } from 'node:crypto';
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type ManifestEntry, readableName } from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import { type ReadBlobOptions, readBlobEntries } from '../tree/read-snapshot.ts';
import { malformed, pathKey } from './git-records.ts';
import { GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';
import { withScratchFolder } from './scratch-folder.ts';

/** Gives the content of one entry: the bytes of a file, the target text of a link. Never by a path that git would follow. */
export type OpenEntry = (path: Uint8Array, entry: ManifestEntry) => AsyncIterable<Uint8Array> | Promise<AsyncIterable<Uint8Array>>;

/** Where the content of a tree comes from: one entry at a time, or a snapshot blob that is read once in order. */
export type TreeContent = OpenEntry | { readonly blobFile: string; readonly options?: Omit<ReadBlobOptions, 'snapshotId'> };

interface Piece {
  readonly entry: ManifestEntry;
  readonly content: AsyncIterable<Uint8Array>;
}

function changed(entry: ManifestEntry, what: string): CodedError {
  return new CodedError('content_mismatch', `${readableName(entry.path)} ${what}`, { action: 'Collect or fetch the snapshot again.' });
}

async function* piecesOf(wanted: readonly ManifestEntry[], source: TreeContent): AsyncGenerator<Piece> {
  const missing = new Map(wanted.map((entry) => [pathKey(entry.path), entry]));
  if (typeof source === 'function') {
    for (const entry of wanted) yield { entry, content: await source(entry.path, entry) };
    return;
  }
  for await (const found of readBlobEntries(source.blobFile, source.options ?? {})) {
    const key = pathKey(found.path);
    const entry = missing.get(key);
    if (entry === undefined || found.kind === 'directory') continue;
    missing.delete(key);
    yield { entry, content: found.content };
  }
  for (const entry of missing.values()) throw changed(entry, 'is not in the snapshot');
}

/** The blobs of contents, and what was seen of the contents while they were written; all by the SHA-256 of each. */
export interface WrittenBlobs extends SeenContents {
  readonly blobs: ReadonlyMap<string, string>;
}

interface SeenContents {
  /** Those that hold CR LF. */
  readonly withLineEnds: ReadonlySet<string>;
  /** Those that are pointers of Git LFS, so that nothing large is in the commit. */
  readonly lfsPointers: ReadonlySet<string>;
}

const CR = 0x0d;
const LF = 0x0a;

// A pointer is shorter than 1024 bytes and begins with its version (git-lfs, docs/spec.md).
const LFS_POINTER_MAX_BYTES = 1023;
const LFS_POINTER_START = 'version https://git-lfs.github.com/spec/';

async function* blobCommands(
  wanted: readonly ManifestEntry[],
  source: TreeContent,
  order: ManifestEntry[],
  seen: { readonly withLineEnds: Set<string>; readonly lfsPointers: Set<string> },
): AsyncGenerator<Uint8Array> {
  for await (const { entry, content } of piecesOf(wanted, source)) {
    order.push(entry);
    // The length comes first, so nothing within the content can be read as a command.
    yield Buffer.from(`blob\nmark :${order.length}\ndata ${entry.size}\n`);
    const hash = createHash('sha256');
    let bytes = 0;
    let last = 0;
    let start = '';
    for await (const chunk of content) {
      bytes += chunk.length;
      if ((last === CR && chunk[0] === LF) || Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).includes('\r\n')) {
        seen.withLineEnds.add(entry.sha256);
      }
      if (entry.size <= LFS_POINTER_MAX_BYTES) start += Buffer.from(chunk).toString('latin1');
      last = chunk.at(-1) ?? last;
      if (bytes > entry.size) throw changed(entry, 'has more bytes than its manifest says');
      hash.update(chunk);
      yield chunk;
    }
    if (bytes !== entry.size) throw changed(entry, 'has fewer bytes than its manifest says');
    if (hash.digest('hex') !== entry.sha256) throw changed(entry, 'has another content than its manifest says');
    if (start.startsWith(LFS_POINTER_START)) seen.lfsPointers.add(entry.sha256);
    yield Buffer.from('\n');
  }
  yield Buffer.from('done\n');
}

function readMarks(text: string, order: readonly ManifestEntry[]): Map<string, string> {
  const blobs = new Map<string, string>();
  for (const line of text.split('\n')) {
    const [, mark, sha] = /^:([1-9][0-9]*) ([0-9a-f]{40}|[0-9a-f]{64})$/.exec(line) ?? [];
    const entry = order[Number(mark) - 1];
    if (entry !== undefined && sha !== undefined) blobs.set(entry.sha256, sha);
  }
  if (blobs.size !== order.length) throw malformed('fast-import did not name every blob');
  return blobs;
}

/**
 * Writes the content of `entries` (files and links) as blobs and gives their object ids.
 * Throws CodedError `content_mismatch` when a content is not what its manifest says.
 */
export async function writeBlobs(gitDir: string, entries: readonly ManifestEntry[], source: TreeContent): Promise<WrittenBlobs> {
  const wanted = [...new Map(entries.map((entry) => [entry.sha256, entry])).values()];
  const seen = { withLineEnds: new Set<string>(), lfsPointers: new Set<string>() };
  if (wanted.length === 0) return { blobs: new Map(), ...seen };
  return await withScratchFolder(async (folder) => {
    const marks = join(folder, 'marks');
    const order: ManifestEntry[] = [];
    try {
      await runGit(['fast-import', '--quiet', '--done', '--date-format=raw', `--export-marks=${marks}`], {
        gitDir,
        input: blobCommands(wanted, source, order, seen),
        timeoutMs: GIT_PACK_TIMEOUT_MS,
        maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
      });
    } finally {
      await removeCrashReports(gitDir);
    }
    return { blobs: readMarks(await readFile(marks, 'latin1'), order), ...seen };
  });
}

async function removeCrashReports(gitDir: string): Promise<void> {
  for (const name of await readdir(gitDir)) if (name.startsWith('fast_import_crash_')) await rm(join(gitDir, name), { force: true });
}
