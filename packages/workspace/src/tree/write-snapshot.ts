import {
  compareEntries,
  type ManifestEntry,
  snapshotIdOf,
  type TreeLimits,
  tarEnd,
  tarPadding,
  writeTarHeader,
} from '@firecrew/artifact-capture';
import { type StoredBlob, writeBlobFile } from './blob-file.ts';
import { PACK_CHUNK_BYTES } from './chunk-builder.ts';
import { sha256Hex } from './content-hash.ts';
import { ContentSpool } from './content-spool.ts';
import { bytesOfKey } from './folder-handles.ts';
import { type PackOptions, packChunks } from './pack-tree.ts';
import { type ArchiveProof, type ReadArchive, readArchive, refusal } from './read-archive.ts';
import { type ArchiveTrailer, PackLog, type PackReport } from './tree-report.ts';
import type { ByteSource } from './tree-sink.ts';

/** A snapshot in a blob file. */
export interface SnapshotBlob extends StoredBlob {
  readonly snapshotId: string;
  /** The manifest, in canonical order. */
  readonly entries: readonly ManifestEntry[];
}

/** A snapshot taken from a folder, with the report of the walk. */
export interface DirectorySnapshot extends SnapshotBlob {
  readonly report: Omit<PackReport, 'bytes' | 'digest'>;
}

/** A snapshot taken from an untrusted stream, with what was dropped from it. */
export interface ArchiveSnapshot extends SnapshotBlob {
  readonly skipped: ReadArchive['skipped'];
  readonly skippedCount: number;
  readonly contentBytes: number;
  /** Of what arrived. */
  readonly trailer: ArchiveTrailer;
}

/** Bounds and proof for an untrusted stream. */
export interface CanonicaliseOptions extends ArchiveProof {
  readonly limits?: Partial<TreeLimits>;
}

/** Takes a snapshot of a folder that only we write to. @throws CodedError as {@link packTree}; a write error as Node gives it. */
export async function snapshotDirectory(root: string, file: string, options: PackOptions = {}): Promise<DirectorySnapshot> {
  const log = new PackLog();
  const entries: ManifestEntry[] = [];
  const stored = await writeBlobFile(
    file,
    packChunks(root, options, log, (key, entry) => entries.push({ path: bytesOfKey(key), ...entry })),
  );
  const { bytes: _bytes, digest: _digest, ...report } = log.report({ bytes: 0, digest: '' });
  return { ...stored, snapshotId: snapshotIdOf(entries, sha256Hex), entries, report };
}

/**
 * Takes an untrusted tar stream into a canonical blob. No name of it reaches the file system; nothing is left behind when
 * it is refused. The archive may come in any order.
 * @throws CodedError `archive_refused`, `archive_cut`, `unpack_failed`, `archive_trailer_mismatch`.
 */
export async function canonicaliseArchive(source: ByteSource, file: string, options: CanonicaliseOptions = {}): Promise<ArchiveSnapshot> {
  const spool = new ContentSpool(file);
  try {
    const archive = await readArchive(source, spool, options.limits ?? {}, options);
    const entries = [...archive.entries].sort(compareEntries);
    const stored = await writeBlobFile(file, spooledChunks(entries, spool));
    const { snapshotId, skipped, skippedCount, contentBytes, trailer } = archive;
    return { ...stored, snapshotId, entries, skipped, skippedCount, contentBytes, trailer };
  } catch (error) {
    throw refusal(error);
  } finally {
    spool.close();
  }
}

/** {@link snapshotDirectory} for a folder's path, {@link canonicaliseArchive} for a stream. */
export async function writeSnapshotBlob(source: string | ByteSource, file: string): Promise<SnapshotBlob> {
  return typeof source === 'string' ? snapshotDirectory(source, file) : canonicaliseArchive(source, file);
}

async function* spooledChunks(entries: readonly ManifestEntry[], spool: ContentSpool): AsyncGenerator<Buffer> {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  for (const piece of spooledPieces(entries, spool)) {
    pending.push(piece);
    pendingBytes += piece.length;
    if (pendingBytes < PACK_CHUNK_BYTES) continue;
    yield Buffer.concat(pending);
    pending = [];
    pendingBytes = 0;
    await new Promise((resume) => setImmediate(resume));
  }
  yield Buffer.concat(pending);
}

function* spooledPieces(entries: readonly ManifestEntry[], spool: ContentSpool): Generator<Uint8Array> {
  for (const entry of entries) {
    const { path, kind } = entry;
    if (kind === 'directory') yield writeTarHeader({ path, kind, size: 0 });
    else if (kind === 'link') yield writeTarHeader({ path, kind, size: 0, target: spool.targetOf(entry) });
    else {
      yield writeTarHeader({ path, kind, size: entry.size });
      yield* spool.contentOf(entry);
      yield tarPadding(entry.size);
    }
  }
  yield tarEnd();
}
