import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import {
  byteKey,
  compareEntries,
  type EntryKind,
  type ManifestEntry,
  snapshotIdOf,
  type TarEvent,
  TarReader,
  type TreeLimits,
  tarEnd,
  tarPadding,
  writeTarHeader,
} from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import { readBlobFile } from './blob-file.ts';
import { sha256Hex } from './content-hash.ts';
import { refusal } from './read-archive.ts';
import { checkSnapshotId, type UnpackedTree, unpackTree } from './unpack-tree.ts';

/** What is demanded of a blob. */
export interface ReadBlobOptions {
  readonly limits?: Partial<TreeLimits>;
  /** The only digest of the stored bytes that is accepted. */
  readonly blobDigest?: string;
  /** The only snapshot that is accepted. */
  readonly snapshotId?: string;
}

/** One entry of a blob. `content` (the target text for a link) can be read until the next entry is asked for. */
export interface BlobEntry {
  readonly path: Buffer;
  readonly kind: EntryKind;
  readonly size: number;
  readonly content: AsyncIterable<Buffer>;
}

/** One file of a blob as a stream. */
export interface OpenBlobFile {
  readonly kind: 'file' | 'executable' | 'link';
  readonly size: number;
  readonly stream: Readable;
}

/**
 * Unpacks a blob into a fresh folder that takes the destination's place, as {@link unpackTree} does.
 * @throws CodedError `blob_missing`, `blob_corrupt`, `snapshot_mismatch`, and those of {@link unpackTree}.
 */
export async function readSnapshotBlob(file: string, destination: string, options: ReadBlobOptions = {}): Promise<UnpackedTree> {
  const { limits, snapshotId } = options;
  return unpackTree(readBlobFile(file, options.blobDigest), destination, {
    ...(limits === undefined ? {} : { limits }),
    ...(snapshotId === undefined ? {} : { snapshotId }),
  });
}

/**
 * The entries of a blob in order, with their content, without touching the file system.
 * @throws CodedError `blob_not_canonical` when the archive inside is not in canonical form, `archive_refused`, `blob_missing`, `blob_corrupt`.
 */
export async function* readBlobEntries(file: string, options: Omit<ReadBlobOptions, 'snapshotId'> = {}): AsyncGenerator<BlobEntry> {
  yield* orderedEntries(file, blobEvents(file, options));
}

async function* orderedEntries(file: string, events: AsyncGenerator<TarEvent>): AsyncGenerator<BlobEntry> {
  let previous: Pick<ManifestEntry, 'path' | 'kind'> | undefined;
  try {
    for (let next = await events.next(); next.done !== true; next = await events.next()) {
      const event = next.value;
      // What is left of a file that was not read to its end.
      if (event.kind !== 'entry') continue;
      const entry = canonicalEntry(event.entry, events, file);
      if (previous !== undefined && !isOrdered(previous, entry)) throw notCanonical(file);
      previous = entry;
      yield entry;
    }
  } catch (error) {
    throw refusal(error);
  } finally {
    await events.return(undefined);
  }
}

/**
 * The manifest of a blob, every content hashed, and every byte of the archive inside compared with the canonical form.
 * @throws CodedError as {@link readBlobEntries}, and `snapshot_mismatch`.
 */
export async function readManifestOfBlob(
  file: string,
  options: ReadBlobOptions = {},
): Promise<{ readonly snapshotId: string; readonly entries: readonly ManifestEntry[] }> {
  const entries: ManifestEntry[] = [];
  const stored = createHash('sha256');
  const canonical = createHash('sha256');
  for await (const { path, kind, size, content } of orderedEntries(
    file,
    blobEvents(file, options, (chunk) => stored.update(chunk)),
  )) {
    const hash = createHash('sha256');
    const isFile = kind === 'file' || kind === 'executable';
    if (isFile) canonical.update(writeTarHeader({ path, kind, size }));
    for await (const piece of content) {
      hash.update(piece);
      canonical.update(isFile ? piece : writeTarHeader({ path, kind, size: 0, target: piece }));
    }
    if (isFile) canonical.update(tarPadding(size));
    if (kind === 'directory') canonical.update(writeTarHeader({ path, kind, size: 0 }));
    // A copy of its own: a small Buffer is a piece of a pool, and each kept one would keep the headers beside it.
    entries.push({ path: new Uint8Array(path), kind, size, sha256: kind === 'directory' ? '' : hash.digest('hex') });
  }
  canonical.update(tarEnd());
  if (stored.digest('hex') !== canonical.digest('hex')) throw notCanonical(file);
  const snapshotId = snapshotIdOf(entries, sha256Hex);
  checkSnapshotId(snapshotId, options.snapshotId);
  return { snapshotId, entries };
}

/** One file or link of a blob by its byte path; undefined when the blob has none there. A link's stream is its target text. */
export async function openBlobFile(
  file: string,
  path: Uint8Array,
  options: Omit<ReadBlobOptions, 'snapshotId'> = {},
): Promise<OpenBlobFile | undefined> {
  const entries = readBlobEntries(file, options);
  const wanted = byteKey(path);
  for (let next = await entries.next(); next.done !== true; next = await entries.next()) {
    const { path: found, kind, size, content } = next.value;
    if (kind === 'directory' || byteKey(found) !== wanted) continue;
    const stream = Readable.from(content, { objectMode: false });
    stream.once('close', () => {
      entries.return(undefined).catch(() => undefined);
    });
    return { kind, size, stream };
  }
  return undefined;
}

async function* blobEvents(
  file: string,
  options: Omit<ReadBlobOptions, 'snapshotId'>,
  onChunk?: (chunk: Buffer) => void,
): AsyncGenerator<TarEvent> {
  const reader = new TarReader(options.limits);
  let folders = 0;
  for await (const chunk of readBlobFile(file, options.blobDigest)) {
    onChunk?.(chunk);
    for (const event of reader.push(chunk)) {
      if (event.kind === 'skipped') throw notCanonical(file);
      if (event.kind === 'entry' && event.entry.type === 'directory') folders += 1;
      yield event;
    }
  }
  reader.finish();
  if (reader.emptyDirectories().length !== folders) throw notCanonical(file);
}

function canonicalEntry(entry: Extract<TarEvent, { kind: 'entry' }>['entry'], events: AsyncGenerator<TarEvent>, file: string): BlobEntry {
  const path = Buffer.from(entry.path);
  switch (entry.type) {
    case 'directory':
      return { path, kind: 'directory', size: 0, content: noContent() };
    case 'link':
      return { path, kind: 'link', size: entry.target.length, content: targetText(Buffer.from(entry.target)) };
    case 'file':
      return { path, kind: entry.executable ? 'executable' : 'file', size: entry.size, content: fileContent(events) };
    default:
      throw notCanonical(file);
  }
}

async function* noContent(): AsyncGenerator<Buffer> {}

async function* targetText(target: Buffer): AsyncGenerator<Buffer> {
  yield target;
}

async function* fileContent(events: AsyncGenerator<TarEvent>): AsyncGenerator<Buffer> {
  for (let next = await events.next(); next.done !== true; next = await events.next()) {
    if (next.value.kind === 'entry-end') return;
    if (next.value.kind === 'data') {
      const { bytes } = next.value;
      yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
  }
}

function isOrdered(previous: Pick<ManifestEntry, 'path' | 'kind'>, next: Pick<ManifestEntry, 'path' | 'kind'>): boolean {
  return compareEntries(previous, next) < 0;
}

function notCanonical(file: string): CodedError {
  return new CodedError('blob_not_canonical', `the blob ${file} holds an archive that is not in canonical form`, {
    id: file,
    action: 'Only blobs written by this package are snapshots; take the snapshot again.',
  });
}
