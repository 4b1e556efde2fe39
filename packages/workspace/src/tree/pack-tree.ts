import { createHash } from 'node:crypto';
import { fstatSync } from 'node:fs';
import { Readable } from 'node:stream';
import { type ManifestEntry, type TreeLimits, tarEnd, tarPadding, treeLimits, writeTarHeader } from '@firecrew/artifact-capture';
import { CodedError, codeOf } from '@firecrew/base';
import { ChunkBuilder, PACK_CHUNK_BYTES } from './chunk-builder.ts';
import { PackLog, type PackReport } from './tree-report.ts';
import { type TreeSelection, type WalkedEntry, walkTree } from './walk-tree.ts';

/** What to pack, and within which bounds. */
export interface PackOptions extends TreeSelection {
  readonly limits?: Partial<TreeLimits>;
  /** False computes no digest of the archive, for a carrier whose reader asks for none; the report's is then empty. Default true. */
  readonly digest?: boolean;
}

/** A canonical tar stream and the promise of its report, which settles when the stream has ended or failed. */
export interface PackedTree {
  readonly stream: Readable;
  readonly done: Promise<PackReport>;
}

/**
 * Packs a tree as a canonical tar: the same tree gives the same bytes. Memory is bounded whatever the size; a file that
 * changes meanwhile is sent with the size it had when it was opened, and told. `root` itself may be a link.
 * The stream fails with a `CodedError`: `tree_unreadable` (no such folder) or `tree_too_large` (bytes or entries).
 */
export function packTree(root: string, options: PackOptions = {}): PackedTree {
  const log = new PackLog();
  const hash = options.digest === false ? undefined : createHash('sha256');
  let bytes = 0;
  let report: PackReport | undefined;
  async function* chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of packChunks(root, options, log)) {
      hash?.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
    report = log.report({ bytes, digest: hash?.digest('hex') ?? '' });
  }
  const stream = Readable.from(chunks(), { objectMode: false, highWaterMark: PACK_CHUNK_BYTES });
  const done = new Promise<PackReport>((resolve, reject) => {
    stream.once('error', reject);
    stream.once('close', () => {
      if (report !== undefined) resolve(report);
      else
        reject(new CodedError('pack_cut', `the pack of ${root} was stopped before its end`, { id: root, action: 'Pack the tree again.' }));
    });
  });
  // Whoever reads the stream sees its error; a caller that never asks for the report must not crash the process.
  done.catch(() => undefined);
  return { stream, done };
}

/** The chunks of a packed tree; `onEntry` gets each entry with its digest, after its content. */
export async function* packChunks(
  root: string,
  options: PackOptions,
  log: PackLog,
  onEntry?: (entry: ManifestEntry) => void,
): AsyncGenerator<Buffer> {
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
  onEntry: ((entry: ManifestEntry) => void) | undefined,
): Generator<Buffer> {
  const chunks = new ChunkBuilder();
  try {
    for (const entry of walkTree(root, selection, limits, log)) {
      yield* entryPieces(entry, chunks, log, onEntry);
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
  yield* chunks.add(tarEnd());
  yield* chunks.flush();
}

function* entryPieces(
  entry: WalkedEntry,
  chunks: ChunkBuilder,
  log: PackLog,
  onEntry: ((entry: ManifestEntry) => void) | undefined,
): Generator<Buffer> {
  const { path } = entry;
  if (entry.kind === 'directory') {
    log.emptyFolders += 1;
    yield* chunks.add(writeTarHeader({ path, kind: 'directory', size: 0 }));
    onEntry?.({ path, kind: 'directory', size: 0, sha256: '' });
  } else if (entry.kind === 'link') {
    log.links += 1;
    yield* chunks.add(writeTarHeader({ path, kind: 'link', size: 0, target: entry.target }));
    onEntry?.({ path, kind: 'link', size: entry.target.length, sha256: createHash('sha256').update(entry.target).digest('hex') });
  } else {
    const kind = (entry.stats.mode & 0o100) === 0 ? 'file' : 'executable';
    const { size } = entry.stats;
    log.files += 1;
    log.contentBytes += size;
    yield* chunks.add(writeTarHeader({ path, kind, size }));
    const hash = onEntry === undefined ? undefined : createHash('sha256');
    yield* chunks.addFile(entry.fd, size, hash);
    yield* chunks.add(tarPadding(size));
    if (hasChanged(entry)) log.changed.add(path);
    if (hash !== undefined) onEntry?.({ path, kind, size, sha256: hash.digest('hex') });
  }
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
