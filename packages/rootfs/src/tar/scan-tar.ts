import { cutArchive, imageTooLarge, malformedArchive } from './refusals.ts';
import type { TarEntry } from './tar-entry.ts';
import { EXTENSION_FLAGS, TarExtensions } from './tar-extensions.ts';
import { isZeroBlock, paddingOf, parseTarHeader, TAR_BLOCK_BYTES } from './tar-header.ts';

/** Bytes that can be read anywhere: an archive on disk, or a part of one. */
export interface ByteSource {
  readonly size: number;
  /** Exactly `length` bytes from `offset`, which lie inside; throws otherwise. */
  read(offset: number, length: number): Promise<Buffer>;
}

/** An entry and where its content lies in the archive. */
export interface ScannedEntry extends TarEntry {
  readonly offset: number;
}

/** The bounds of one archive. */
export interface ScanLimits {
  readonly maxEntries: number;
  readonly maxMetaBytes: number;
}

/** Zero bytes that may follow the end mark; GNU tar fills its last record. */
const MAX_TRAILING_BYTES = 16 * 1024 * 1024;
const TRAILING_STEP_BYTES = 256 * 1024;

/**
 * The entries of an untrusted archive in order; contents are stepped over. The end mark is demanded, and nothing but zeros may follow it.
 * Throws `layer_malformed`, `layer_cut`, `entry_refused`, `image_too_large`.
 */
export async function* scanTar(source: ByteSource, limits: ScanLimits): AsyncGenerator<ScannedEntry> {
  const extensions = new TarExtensions();
  let entries = 0;
  for (let at = 0; ; ) {
    const block = await readPart(source, at, TAR_BLOCK_BYTES);
    at += TAR_BLOCK_BYTES;
    if (isZeroBlock(block)) {
      extensions.refuseDangling();
      await readEnd(source, at);
      return;
    }
    entries += 1;
    // Extension headers count as well: an archive of nothing else would never end.
    if (entries > limits.maxEntries * 2) throw imageTooLarge(`the archive has more than ${limits.maxEntries} entries`);
    const header = parseTarHeader(block);
    if (EXTENSION_FLAGS.includes(header.typeFlag)) {
      if (header.size < 0 || header.size > limits.maxMetaBytes)
        throw imageTooLarge(`an extension header has ${header.size} bytes; ${limits.maxMetaBytes} are allowed`);
      extensions.take(header.typeFlag, await readPart(source, at, header.size));
      at += header.size + paddingOf(header.size);
      continue;
    }
    const entry = extensions.apply(header);
    if (entry.size > source.size - at) throw cutArchive();
    yield { ...entry, offset: at };
    at += entry.size + paddingOf(entry.size);
  }
}

async function readEnd(source: ByteSource, from: number): Promise<void> {
  if (!isZeroBlock(await readPart(source, from, TAR_BLOCK_BYTES))) throw malformedArchive('an entry follows a zero block');
  const trailing = source.size - from - TAR_BLOCK_BYTES;
  if (trailing > MAX_TRAILING_BYTES) throw malformedArchive('too many bytes follow the end mark');
  for (let at = source.size - trailing; at < source.size; at += TRAILING_STEP_BYTES) {
    const part = await source.read(at, Math.min(TRAILING_STEP_BYTES, source.size - at));
    if (!isZeroBlock(part)) throw malformedArchive('content follows the end mark');
  }
}

async function readPart(source: ByteSource, offset: number, length: number): Promise<Buffer> {
  if (length > source.size - offset) throw cutArchive();
  return length === 0 ? Buffer.alloc(0) : await source.read(offset, length);
}
