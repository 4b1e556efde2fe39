import { malformedKernel } from './bzimage.ts';

const MAGIC = 0x184c2102;
/** Bytes that one block of the legacy format may unpack to. */
const BLOCK_BYTES = 8 * 1024 * 1024;
const MIN_MATCH = 4;

/**
 * Unpacks the legacy format of LZ4, which kernels use: a magic number, then blocks, each with its length in front. Exactly `unpackedBytes`
 * must come out. Throws `kernel_malformed`.
 */
export function unpackLz4(bytes: Buffer, unpackedBytes: number): Buffer {
  const output = Buffer.alloc(unpackedBytes);
  let written = 0;
  if (bytes.length < 4 || bytes.readUInt32LE(0) !== MAGIC) throw malformedKernel('it is no LZ4 of the legacy form');
  for (let at = 4; at < bytes.length; ) {
    if (bytes.length - at < 4) throw damaged();
    const length = bytes.readUInt32LE(at);
    at += 4;
    // The magic number may stand between blocks, where archives were joined.
    if (length === MAGIC) continue;
    if (length > bytes.length - at) throw damaged();
    const end = Math.min(written + BLOCK_BYTES, unpackedBytes);
    written = unpackBlock(bytes.subarray(at, at + length), output, written, end);
    at += length;
  }
  if (written !== unpackedBytes) throw damaged();
  return output;
}

/** Unpacks one block to `output` from `start`, at most to `end`; gives where it ends. */
function unpackBlock(block: Buffer, output: Buffer, start: number, end: number): number {
  let from = 0;
  let to = start;
  const lengthOf = (nibble: number): number => {
    let length = nibble;
    if (nibble !== 15) return length;
    for (;;) {
      const byte = block[from];
      if (byte === undefined) throw damaged();
      from += 1;
      length += byte;
      if (byte !== 255) return length;
    }
  };
  while (from < block.length) {
    const token = block[from] ?? 0;
    from += 1;
    const literals = lengthOf(token >> 4);
    if (literals > block.length - from || literals > end - to) throw damaged();
    block.copy(output, to, from, from + literals);
    from += literals;
    to += literals;
    // The last sequence of a block has no match.
    if (from === block.length) return to;
    if (block.length - from < 2) throw damaged();
    const distance = block.readUInt16LE(from);
    from += 2;
    const match = lengthOf(token & 15) + MIN_MATCH;
    if (distance === 0 || distance > to - start || match > end - to) throw damaged();
    copyMatch(output, to, distance, match);
    to += match;
  }
  throw damaged();
}

/** A match may reach into what it writes itself: then its bytes repeat. */
function copyMatch(output: Buffer, to: number, distance: number, length: number): void {
  if (distance >= length) output.copy(output, to, to - distance, to - distance + length);
  else for (let at = 0; at < length; at += 1) output[to + at] = output[to + at - distance] ?? 0;
}

function damaged(): Error {
  return malformedKernel('its LZ4 blocks are damaged');
}
