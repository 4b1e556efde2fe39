import { CodedError } from '@firecrew/base';
import type { FlatEntry } from '../layers/flatten-tree.ts';
import type { ByteSource } from '../tar/scan-tar.ts';
import { paddingOf } from '../tar/tar-header.ts';
import { TAR_END_BYTES, writeTarHeader } from '../tar/write-tar.ts';

/** Bytes of content that are read at once. */
const CONTENT_STEP_BYTES = 1024 * 1024;
/** Small pieces are joined to parts of at least this size, so that a pipe is not fed header by header. */
const PART_BYTES = 256 * 1024;

/** One canonical archive of flattened entries, with contents from the archives of their layers. `onEntry` is told each entry's number. */
export async function* writeArchive(
  entries: readonly FlatEntry[],
  layers: readonly ByteSource[],
  onEntry?: (done: number) => void,
): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let held = 0;
  for await (const piece of piecesOf(entries, layers, onEntry)) {
    pieces.push(piece);
    held += piece.length;
    if (held < PART_BYTES) continue;
    yield Buffer.concat(pieces);
    pieces = [];
    held = 0;
  }
  yield Buffer.concat([...pieces, Buffer.alloc(TAR_END_BYTES)]);
}

async function* piecesOf(
  entries: readonly FlatEntry[],
  layers: readonly ByteSource[],
  onEntry: ((done: number) => void) | undefined,
): AsyncGenerator<Buffer> {
  let done = 0;
  for (const { entry, content } of entries) {
    yield writeTarHeader(entry);
    if (content !== undefined) {
      const layer = layers[content.layer];
      if (layer === undefined) throw new CodedError('image_malformed', `there is no layer ${content.layer}`);
      const end = content.offset + content.size;
      for (let at = content.offset; at < end; at += CONTENT_STEP_BYTES) yield await layer.read(at, Math.min(CONTENT_STEP_BYTES, end - at));
      yield Buffer.alloc(paddingOf(content.size));
    }
    done += 1;
    onEntry?.(done);
  }
}
