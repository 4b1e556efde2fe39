import { createHash, type Hash, hash } from 'node:crypto';
import {
  byteKey,
  CaptureError,
  type ManifestEntry,
  type SkipReason,
  snapshotIdOf,
  type TarEvent,
  TarReader,
  type TreeLimits,
} from '@firecrew/artifact-capture';
import { CodedError, codeOf } from '@firecrew/base';
import { type ArchiveTrailer, BoundedList, type SkippedPath } from './tree-report.ts';
import type { ByteStream, TreeSink } from './tree-sink.ts';

/** Bytes handled before the process gets its turn: storing is synchronous. */
const TURN_BYTES = 64 * 1024;
const SHA256_OF_NOTHING = sha256Hex(new Uint8Array(0));

/** What an accepted archive holds. */
export interface ReadArchive {
  /** In archive order; empty folders last. */
  readonly entries: readonly ManifestEntry[];
  /** Identity of the tree by content. */
  readonly snapshotId: string;
  readonly contentBytes: number;
  readonly skipped: readonly SkippedPath<SkipReason>[];
  readonly skippedCount: number;
  /** Computed from what arrived, to be compared with what the packer said; the digest is empty where the source gave the proof. */
  readonly trailer: ArchiveTrailer;
}

/** The trailer the packer announced, given now or once the stream has ended. */
export type ExpectedTrailer = ArchiveTrailer | (() => ArchiveTrailer | Promise<ArchiveTrailer>);

/** What must hold once the stream has ended. */
export interface ArchiveProof {
  /** The packer's own count and digest; a difference refuses. */
  readonly trailer?: ExpectedTrailer;
  /** For a source that compares bytes and digest itself: a rejection refuses, and no digest of the stream is computed here. */
  readonly proof?: () => Promise<unknown>;
}

/**
 * Reads an untrusted tar stream to its end mark and feeds the sink.
 * @throws CodedError `archive_refused` (the cause is a `CaptureError` with the exact reason), `archive_cut` when the stream
 * failed, `unpack_failed` when the disk refused, `archive_trailer_mismatch`; what `proof` rejects with.
 */
export async function readArchive(
  stream: ByteStream,
  sink: TreeSink,
  limits: Partial<TreeLimits>,
  demanded: ArchiveProof = {},
): Promise<ReadArchive> {
  const reader = new TarReader(limits);
  const collector = new Collector(sink);
  const streamHash = demanded.proof === undefined || demanded.trailer !== undefined ? createHash('sha256') : undefined;
  let bytes = 0;
  let sinceTurn = 0;
  try {
    for await (const chunk of stream) {
      for (let at = 0; at < chunk.length; at += TURN_BYTES) {
        const part = chunk.subarray(at, at + TURN_BYTES);
        streamHash?.update(part);
        bytes += part.length;
        feed(reader, collector, part);
        sinceTurn += part.length;
        if (sinceTurn < TURN_BYTES) continue;
        sinceTurn = 0;
        await new Promise((resume) => setImmediate(resume));
      }
    }
    reader.finish();
  } catch (error) {
    throw refusal(error);
  }
  for (const path of reader.emptyDirectories()) collector.add({ path, kind: 'directory', size: 0, sha256: '' });
  const trailer = { entries: collector.count, bytes, digest: streamHash?.digest('hex') ?? '' };
  const { trailer: expected, proof } = demanded;
  if (expected !== undefined) checkTrailer(trailer, typeof expected === 'function' ? await expected() : expected);
  await proof?.();
  return { ...collector.result(), trailer };
}

function feed(reader: TarReader, collector: Collector, part: Uint8Array): void {
  try {
    for (const event of reader.push(part)) collector.take(event);
  } catch (error) {
    if (error instanceof CaptureError) throw error;
    throw new CodedError('unpack_failed', `an entry could not be stored (${codeOf(error) ?? 'error'})`, {
      action: 'Nothing was changed. Check the room and the rights on the disk.',
      cause: error,
    });
  }
}

/** Turns what stopped a read into a coded error. */
export function refusal(error: unknown): CodedError {
  if (error instanceof CodedError) return error;
  if (error instanceof CaptureError) {
    return new CodedError('archive_refused', `the archive was refused (${error.code}): ${error.message}`, {
      action: 'Nothing was changed. Look at the sender: an honest packer writes no such archive.',
      cause: error,
    });
  }
  return new CodedError('archive_cut', `the archive could not be read to its end (${codeOf(error) ?? 'error'})`, {
    action: 'Nothing was changed. Send it again.',
    cause: error,
  });
}

function checkTrailer(found: ArchiveTrailer, stated: ArchiveTrailer): void {
  if (found.entries === stated.entries && found.bytes === stated.bytes && found.digest === stated.digest) return;
  throw new CodedError(
    'archive_trailer_mismatch',
    `the archive does not match its trailer: ${found.entries} entries and ${found.bytes} bytes arrived, ${stated.entries} and ${stated.bytes} were announced`,
    { action: 'Nothing was changed. Send it again.' },
  );
}

interface OpenFile {
  readonly path: Uint8Array;
  readonly size: number;
  readonly executable: boolean;
  hash?: Hash;
  sha256?: string;
}

class Collector {
  readonly #sink: TreeSink;
  readonly #entries: ManifestEntry[] = [];
  readonly #digests = new Map<string, string>();
  readonly #skipped = new BoundedList<SkippedPath<SkipReason>>();
  #open: OpenFile | undefined;
  #contentBytes = 0;
  count = 0;

  constructor(sink: TreeSink) {
    this.#sink = sink;
  }

  take(event: TarEvent): void {
    if (event.kind === 'entry') this.#takeEntry(event.entry);
    else if (event.kind === 'data' && this.#open !== undefined) {
      this.#hash(this.#open, event.bytes);
      this.#sink.write(event.bytes);
    } else if (event.kind === 'entry-end') this.#closeFile();
    else if (event.kind === 'skipped') {
      this.count += 1;
      this.#skipped.add({ path: Buffer.from(event.path), reason: event.reason });
    }
  }

  add(entry: ManifestEntry): void {
    this.#entries.push(entry);
  }

  result(): Omit<ReadArchive, 'trailer'> {
    return {
      entries: this.#entries,
      snapshotId: snapshotIdOf(this.#entries, sha256Hex),
      contentBytes: this.#contentBytes,
      skipped: this.#skipped.items,
      skippedCount: this.#skipped.count,
    };
  }

  #takeEntry(entry: Extract<TarEvent, { kind: 'entry' }>['entry']): void {
    this.count += 1;
    const { path } = entry;
    if (entry.type === 'directory') this.#sink.directory(path);
    else if (entry.type === 'link') {
      this.#sink.link(path, entry.target);
      this.add({ path, kind: 'link', size: entry.target.length, sha256: sha256Hex(entry.target) });
    } else if (entry.type === 'copy') {
      this.#sink.copy(path, entry.source, entry.size, entry.executable);
      this.#addFile(path, entry.size, entry.executable, this.#digests.get(byteKey(entry.source)) ?? '');
    } else {
      this.#sink.openFile(path, entry.size, entry.executable);
      this.#open = { path, size: entry.size, executable: entry.executable };
    }
  }

  #closeFile(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    this.#sink.closeFile();
    this.#addFile(open.path, open.size, open.executable, open.sha256 ?? open.hash?.digest('hex') ?? SHA256_OF_NOTHING);
  }

  /** Most files arrive in one piece, for which no object of the hash is made: thousands would wait to be collected. */
  #hash(open: OpenFile, bytes: Uint8Array): void {
    if (open.hash === undefined && bytes.length === open.size) open.sha256 = sha256Hex(bytes);
    else {
      open.hash ??= createHash('sha256');
      open.hash.update(bytes);
    }
  }

  #addFile(path: Uint8Array, size: number, executable: boolean, sha256: string): void {
    this.#digests.set(byteKey(path), sha256);
    this.#contentBytes += size;
    this.add({ path, kind: executable ? 'executable' : 'file', size, sha256 });
  }
}

/** SHA-256 in lower-case hex. */
export function sha256Hex(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex');
}
