import { byteKey, concatBytes } from '../bytes.ts';
import { CaptureError } from '../capture-error.ts';
import { parseNumber } from './parse-number.ts';

/** Bytes of a block, the unit of the format. */
export const TAR_BLOCK_BYTES = 512;

/** What one header block says, before extension headers are applied. */
export interface RawHeader {
  readonly name: Uint8Array;
  readonly typeFlag: string;
  readonly size: number;
  readonly executable: boolean;
  readonly linkName: Uint8Array;
}

const SLASH = new Uint8Array([0x2f]);
const CHECKSUM_FROM = 148;
const CHECKSUM_TO = 156;

/**
 * Reads one header block of the ustar, GNU or v7 form. Owner, times and device numbers are not even parsed.
 * @throws CaptureError `bad_checksum`, `bad_magic`, `bad_number`.
 */
export function parseHeader(block: Uint8Array): RawHeader {
  checkSum(block);
  const magic = byteKey(block.subarray(257, 265));
  const isUstar = magic === 'ustar\x0000';
  if (!isUstar && magic !== 'ustar  \0' && magic !== '\0'.repeat(8)) throw new CaptureError('bad_magic', 'a header is of an unknown form');
  const name = untilNul(block.subarray(0, 100));
  const prefix = isUstar ? untilNul(block.subarray(345, 500)) : new Uint8Array(0);
  return {
    name: prefix.length === 0 ? name : concatBytes([prefix, SLASH, name]),
    typeFlag: String.fromCharCode(block[156] ?? 0),
    size: parseNumber(block.subarray(124, 136)),
    executable: (parseNumber(block.subarray(100, 108)) & 0o100) !== 0,
    linkName: untilNul(block.subarray(157, 257)),
  };
}

/** True when a block holds zeros only, as those of the end mark do. */
export function isZeroBlock(block: Uint8Array): boolean {
  return block.every((byte) => byte === 0);
}

function checkSum(block: Uint8Array): void {
  let unsigned = 0;
  let signed = 0;
  for (let at = 0; at < TAR_BLOCK_BYTES; at += 1) {
    const byte = at >= CHECKSUM_FROM && at < CHECKSUM_TO ? 0x20 : (block[at] ?? 0);
    unsigned += byte;
    // Some historic writers summed signed bytes.
    signed += byte > 127 ? byte - 256 : byte;
  }
  let stated: number;
  try {
    stated = parseNumber(block.subarray(CHECKSUM_FROM, CHECKSUM_TO));
  } catch {
    throw new CaptureError('bad_checksum', 'a header has no checksum');
  }
  if (stated !== unsigned && stated !== signed) throw new CaptureError('bad_checksum', 'the checksum of a header is wrong');
}

function untilNul(field: Uint8Array): Uint8Array {
  const end = field.indexOf(0);
  return field.slice(0, end === -1 ? field.length : end);
}
