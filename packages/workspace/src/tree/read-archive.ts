import {
  byteKey,
  CaptureError,
  type ManifestEntry,
  type SkipReason,
  type TarEvent,
  TarReader,
  type TreeLimits,
} from '@firecrew/artifact-capture';
import { CodedError, codeOf } from '@firecrew/base';
import { ContentHash, sha256Hex } from './content-hash.ts';
import { ManifestDigest } from './manifest-digest.ts';
import { type ArchiveTrailer, BoundedList, type SkippedPath } from './tree-report.ts';
import { type ByteSource, type ByteStream, placeEntry, type TreeSink } from './tree-sink.ts';

/** Bytes handled before the process gets its turn: storing is synchronous. */
const TURN_BYTES = 64 * 1024;

/** What an accepted archive holds. */
export interface ReadArchive {
  /** In archive order; empty folders last. */
  readonly entries: readonly ManifestEntry[];
  /** Identity of the tree by content. */
  readonly snapshotId: string;
  readonly contentBytes: number;
  readonly skipped: readonly SkippedPath<SkipReason>[];
  readonly skippedCount: number;
  /** Computed from what arrived, to be compared with what the packer said. */
  readonly trailer: ArchiveTrailer;
}

/** The trailer the packer announced, given now or once the stream has ended. */
export type ExpectedTrailer = ArchiveTrailer | (() => ArchiveTrailer | Promise<ArchiveTrailer>);

/** What must hold once the stream has ended. */
export interface ArchiveProof {
  /** The packer's own counts and digest; a difference refuses. */
  readonly trailer?: ExpectedTrailer;
  /** For a source that compares counts and digest itself: it is told what arrived, and a rejection refuses. */
  readonly proof?: (received: ArchiveTrailer) => Promise<unknown>;
}

/**
 * Reads an untrusted tar stream to its end mark and feeds the sink.
 * @throws CodedError `archive_refused` (the cause is a `CaptureError` with the exact reason), `archive_cut` when the stream
 * failed, `unpack_failed` when the disk refused, `archive_trailer_mismatch`; what `proof` rejects with.
 */
export async function readArchive(
  source: ByteSource,
  sink: TreeSink,
  limits: Partial<TreeLimits>,
  demanded: ArchiveProof = {},
): Promise<ReadArchive> {
  const collector = new Collector(sink);
  let bytes = 0;
  const onPart = (part: Uint8Array): void => {
    bytes += part.length;
  };
  const emptyFolders = await readEvents(source, limits, (event) => collector.take(event), onPart);
  for (const path of emptyFolders) collector.addEmpty(path);
  const result = collector.result();
  const trailer = { entries: collector.count, bytes, digest: result.snapshotId };
  const { trailer: expected, proof } = demanded;
  if (expected !== undefined) checkTrailer(trailer, typeof expected === 'function' ? await expected() : expected);
  await proof?.(trailer);
  return { ...result, trailer };
}

/**
 * Reads an untrusted tar stream to its end mark and hands on what it says; gives the folders that were named and hold nothing.
 * @throws CodedError `archive_refused`, `archive_cut`, and `unpack_failed` for what `onEvent` throws.
 */
export async function readEvents(
  source: ByteSource,
  limits: Partial<TreeLimits>,
  onEvent: (event: TarEvent) => void,
  onPart?: (part: Uint8Array) => void,
): Promise<Uint8Array[]> {
  const reader = new TarReader(limits);
  const take = (part: Uint8Array): void => {
    onPart?.(part);
    feed(reader, part, onEvent);
  };
  try {
    await (typeof source === 'function' ? source(take) : takeInTurns(source, take));
    reader.finish();
  } catch (error) {
    throw refusal(error);
  }
  return reader.emptyDirectories();
}

async function takeInTurns(stream: ByteStream, take: (part: Uint8Array) => void): Promise<void> {
  let sinceTurn = 0;
  for await (const chunk of stream) {
    for (let at = 0; at < chunk.length; at += TURN_BYTES) {
      const part = chunk.subarray(at, at + TURN_BYTES);
      take(part);
      sinceTurn += part.length;
      if (sinceTurn < TURN_BYTES) continue;
      sinceTurn = 0;
      await new Promise((resume) => setImmediate(resume));
    }
  }
}

function feed(reader: TarReader, part: Uint8Array, onEvent: (event: TarEvent) => void): void {
  try {
    for (const event of reader.push(part)) onEvent(event);
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
  readonly key: string;
  readonly path: Uint8Array;
  readonly size: number;
  readonly executable: boolean;
  readonly content: ContentHash;
}

class Collector {
  readonly #sink: TreeSink;
  readonly #entries: { readonly key: string; readonly entry: ManifestEntry }[] = [];
  readonly #skipped = new BoundedList<SkippedPath<SkipReason>>();
  /** Digests by key, kept from the first copy on. */
  #digests: Map<string, string> | undefined;
  #open: OpenFile | undefined;
  #contentBytes = 0;
  count = 0;

  constructor(sink: TreeSink) {
    this.#sink = sink;
  }

  take(event: TarEvent): void {
    if (event.kind === 'entry') this.#takeEntry(event.entry);
    else if (event.kind === 'data' && this.#open !== undefined) {
      this.#open.content.update(event.bytes);
      this.#sink.write(event.bytes);
    } else if (event.kind === 'entry-end') this.#closeFile();
    else if (event.kind === 'skipped') {
      this.count += 1;
      this.#skipped.add({ path: Buffer.from(event.path), reason: event.reason });
    }
  }

  /** Adds a folder that turned out to be empty. */
  addEmpty(path: Uint8Array): void {
    this.#add(byteKey(path), { path, kind: 'directory', size: 0, sha256: '' });
  }

  result(): Omit<ReadArchive, 'trailer'> {
    return {
      entries: this.#entries.map(({ entry }) => entry),
      snapshotId: this.#snapshotId(),
      contentBytes: this.#contentBytes,
      skipped: this.#skipped.items,
      skippedCount: this.#skipped.count,
    };
  }

  /** The reader has checked that these are a tree, so only their order is left to make. */
  #snapshotId(): string {
    const ordered = this.#entries.map(({ key, entry }) => ({ key, entry, order: entry.kind === 'directory' ? `${key}/` : key }));
    ordered.sort((a, b) => (a.order < b.order ? -1 : 1));
    const manifest = new ManifestDigest();
    for (const { key, entry } of ordered) manifest.add(key, entry);
    return manifest.snapshotId();
  }

  #add(key: string, entry: ManifestEntry): void {
    this.#entries.push({ key, entry });
    this.#digests?.set(key, entry.sha256);
  }

  #takeEntry(entry: Extract<TarEvent, { kind: 'entry' }>['entry']): void {
    this.count += 1;
    const { path } = entry;
    const key = byteKey(path);
    placeEntry(this.#sink, key, entry);
    if (entry.type === 'link') this.#add(key, { path, kind: 'link', size: entry.target.length, sha256: sha256Hex(entry.target) });
    else if (entry.type === 'copy') this.#addFile({ key, ...entry }, this.#digestOf(byteKey(entry.source)));
    else if (entry.type === 'file')
      this.#open = { key, path, size: entry.size, executable: entry.executable, content: new ContentHash(entry.size) };
  }

  #closeFile(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    this.#sink.closeFile();
    this.#addFile(open, open.content.hex());
  }

  #addFile({ key, path, size, executable }: Omit<OpenFile, 'content'>, sha256: string): void {
    this.#contentBytes += size;
    this.#add(key, { path, kind: executable ? 'executable' : 'file', size, sha256 });
  }

  #digestOf(key: string): string {
    this.#digests ??= new Map(this.#entries.map((one) => [one.key, one.entry.sha256]));
    return this.#digests.get(key) ?? '';
  }
}
