import { fstatSync } from 'node:fs';
import { Readable } from 'node:stream';
import {
  type ManifestEntry,
  putFileHeader,
  TAR_BLOCK_BYTES,
  type TreeLimits,
  tarEnd,
  treeLimits,
  writeTarHeader,
} from '@firecrew/artifact-capture';
import { CodedError, codeOf } from '@firecrew/base';
import { ChunkBuilder, PACK_CHUNK_BYTES } from './chunk-builder.ts';
import { ContentHash, sha256Hex } from './content-hash.ts';
import { bytesOfKey } from './folder-handles.ts';
import { ownedChunks } from './lend-chunks.ts';
import { ManifestDigest } from './manifest-digest.ts';
import { PackLog, type PackReport } from './tree-report.ts';
import { type TreeSelection, type WalkedEntry, walkTree } from './walk-tree.ts';

/** What to pack, and within which bounds. */
export interface PackOptions extends TreeSelection {
  readonly limits?: Partial<TreeLimits>;
  /** False hashes nothing, for a carrier whose reader asks for no digest; the report's is then empty. Default true. */
  readonly digest?: boolean;
}

/** A canonical tar, to be read once, by `chunks` or by `stream`; and the promise of its report, which settles when it has ended or failed. */
export interface PackedTree {
  /** Each chunk is valid until the next is asked for. */
  readonly chunks: AsyncGenerator<Buffer>;
  /** Made when it is asked for. */
  readonly stream: Readable;
  readonly done: Promise<PackReport>;
}

/** Told of each entry after its content; `key` is its path, one character for each byte. */
export type OnEntry = (key: string, entry: Pick<ManifestEntry, 'kind' | 'size' | 'sha256'>) => void;

/**
 * Packs a tree as a canonical tar: the same tree gives the same bytes. Memory is bounded whatever the size; a file that
 * changes meanwhile is sent with the size it had when it was opened, and told. `root` itself may be a link.
 * The chunks fail with a `CodedError`: `tree_unreadable` (no such folder) or `tree_too_large` (bytes or entries).
 */
export function packTree(root: string, options: PackOptions = {}): PackedTree {
  const { promise: done, resolve, reject } = Promise.withResolvers<PackReport>();
  // Whoever reads sees the error; a caller that never asks for the report must not crash the process.
  done.catch(() => undefined);
  const cut = (): void =>
    reject(new CodedError('pack_cut', `the pack of ${root} was stopped before its end`, { id: root, action: 'Pack the tree again.' }));
  async function* reported(): AsyncGenerator<Buffer> {
    const log = new PackLog();
    const manifest = options.digest === false ? undefined : new ManifestDigest();
    let bytes = 0;
    try {
      for await (const chunk of packChunks(root, options, log, manifest && ((key, entry) => manifest.add(key, entry)))) {
        bytes += chunk.length;
        yield chunk;
      }
      resolve(log.report({ bytes, digest: manifest?.snapshotId() ?? '' }));
    } catch (error) {
      reject(error);
      throw error;
    } finally {
      cut();
    }
  }
  const chunks = reported();
  let stream: Readable | undefined;
  return {
    chunks,
    get stream(): Readable {
      stream ??= Readable.from(ownedChunks(chunks), { objectMode: false, highWaterMark: PACK_CHUNK_BYTES }).once('close', cut);
      return stream;
    },
    done,
  };
}

/** The chunks of a packed tree, each valid until the next is asked for; nothing is hashed without `onEntry`. */
export async function* packChunks(root: string, options: PackOptions, log: PackLog, onEntry?: OnEntry): AsyncGenerator<Buffer> {
  const limits = treeLimits(options.limits);
  for (const chunk of packPieces(root, options, limits, log, onEntry)) {
    yield chunk;
    // Reading is synchronous, so the process gets its turn between chunks.
    await new Promise((resume) => setImmediate(resume));
  }
}

function* packPieces(
  root: string,
  selection: TreeSelection,
  limits: TreeLimits,
  log: PackLog,
  onEntry: OnEntry | undefined,
): Generator<Buffer> {
  const chunks = new ChunkBuilder();
  try {
    for (const entry of walkTree(root, selection, limits, log)) {
      if (entry.kind === 'file') yield* filePieces(entry, chunks, log, onEntry);
      else yield* addBytes(chunks, otherHeader(entry, log, onEntry));
      checkBounds(root, limits, log);
    }
  } catch (error) {
    if (error instanceof CodedError) throw error;
    throw new CodedError('tree_unreadable', `the tree ${root} could not be read (${codeOf(error) ?? 'error'})`, {
      id: root,
      action: 'Check that the folder exists and may be read.',
      cause: error,
    });
  }
  yield* addBytes(chunks, tarEnd());
  if (chunks.room < PACK_CHUNK_BYTES) yield chunks.take();
}

function* addBytes(chunks: ChunkBuilder, bytes: Uint8Array): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    if (chunks.room === 0) yield chunks.take();
    at += chunks.add(bytes.subarray(at));
  }
}

function otherHeader(entry: Exclude<WalkedEntry, { kind: 'file' }>, log: PackLog, onEntry: OnEntry | undefined): Uint8Array {
  const path = bytesOfKey(entry.key);
  if (entry.kind === 'directory') {
    log.emptyFolders += 1;
    onEntry?.(entry.key, { kind: 'directory', size: 0, sha256: '' });
    return writeTarHeader({ path, kind: 'directory', size: 0 });
  }
  log.links += 1;
  onEntry?.(entry.key, { kind: 'link', size: entry.target.length, sha256: sha256Hex(entry.target) });
  return writeTarHeader({ path, kind: 'link', size: 0, target: entry.target });
}

function* filePieces(
  entry: Extract<WalkedEntry, { kind: 'file' }>,
  chunks: ChunkBuilder,
  log: PackLog,
  onEntry: OnEntry | undefined,
): Generator<Buffer> {
  const { key, fd, stats } = entry;
  const { size } = stats;
  const kind = (stats.mode & 0o100) === 0 ? 'file' : 'executable';
  log.files += 1;
  log.contentBytes += size;
  // Every header and every content begins at a block, and a chunk ends at one.
  if (chunks.room === 0) yield chunks.take();
  const isPlain = chunks.addWith(TAR_BLOCK_BYTES, (chunk, at) => putFileHeader(chunk, at, { key, kind, size }));
  if (!isPlain) yield* addBytes(chunks, writeTarHeader({ path: bytesOfKey(key), kind, size }));
  const content = onEntry === undefined ? undefined : new ContentHash(size);
  for (let at = 0; at < size; ) {
    if (chunks.room === 0) yield chunks.take();
    const piece = chunks.addContent(fd, at, size - at);
    at += piece.length;
    content?.update(piece);
  }
  const rest = size % TAR_BLOCK_BYTES;
  if (rest > 0) chunks.addZeros(TAR_BLOCK_BYTES - rest);
  if (hasChanged(entry)) log.changed.add(bytesOfKey(key));
  if (content !== undefined) onEntry?.(key, { kind, size, sha256: content.hex() });
}

function hasChanged(entry: Extract<WalkedEntry, { kind: 'file' }>): boolean {
  const now = fstatSync(entry.fd);
  const { size, mtimeMs, ctimeMs } = entry.stats;
  return now.size !== size || now.mtimeMs !== mtimeMs || now.ctimeMs !== ctimeMs;
}

function checkBounds(root: string, limits: TreeLimits, log: PackLog): void {
  const entries = log.files + log.links + log.emptyFolders;
  if (entries <= limits.maxEntries && log.contentBytes <= limits.maxTotalBytes) return;
  throw new CodedError('tree_too_large', `the tree ${root} holds more than ${limits.maxEntries} entries or ${limits.maxTotalBytes} bytes`, {
    id: root,
    action: 'Leave generated files out, or raise the bound.',
  });
}
