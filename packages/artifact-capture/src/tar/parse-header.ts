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
const USTAR_MAGIC = 'ustar\x0000';
const GNU_MAGIC = 'ustar  \0';
const V7_MAGIC = '\0'.repeat(8);
const CHECKSUM_FROM = 148;
const CHECKSUM_TO = 156;
const BLANK = 0x20;
const SIGN_BIT = 0x80;
const NOTHING = new Uint8Array(0);

/**
 * Reads one header block of the ustar, GNU or v7 form. Owner, times and device numbers are not even parsed.
 * @throws CaptureError `bad_checksum`, `bad_magic`, `bad_number`.
 */
export function parseHeader(block: Uint8Array): RawHeader {
  checkSum(block);
  const magic = byteKey(block.subarray(257, 265));
  const isUstar = magic === USTAR_MAGIC;
  if (!isUstar && magic !== GNU_MAGIC && magic !== V7_MAGIC) throw new CaptureError('bad_magic', 'a header is of an unknown form');
  const name = untilNul(block, 0, 100);
  const prefix = isUstar ? untilNul(block, 345, 500) : NOTHING;
  return {
    name: prefix.length === 0 ? name : concatBytes([prefix, SLASH, name]),
    typeFlag: String.fromCharCode(block[156] ?? 0),
    size: parseNumber(block, 124, 136),
    executable: (parseNumber(block, 100, 108) & 0o100) !== 0,
    linkName: untilNul(block, 157, 257),
  };
}

/** True when a block holds zeros only, as those of the end mark do. */
export function isZeroBlock(block: Uint8Array): boolean {
  return block.every((byte) => byte === 0);
}

function checkSum(block: Uint8Array): void {
  let stated: number;
  try {
    stated = parseNumber(block, CHECKSUM_FROM, CHECKSUM_TO);
  } catch {
    throw new CaptureError('bad_checksum', 'a header has no checksum');
  }
  if (stated !== sumOf(block, 0) && stated !== sumOf(block, SIGN_BIT))
    throw new CaptureError('bad_checksum', 'the checksum of a header is wrong');
}

/** The sum of the bytes, those of the checksum counted as blanks. Some historic writers summed signed bytes: `sign` is then the top bit. */
function sumOf(block: Uint8Array, sign: number): number {
  let sum = BLANK * (CHECKSUM_TO - CHECKSUM_FROM);
  for (let at = 0; at < TAR_BLOCK_BYTES; at += 1) {
    const byte = block[at] ?? 0;
    if (at < CHECKSUM_FROM || at >= CHECKSUM_TO) sum += byte - ((byte & sign) << 1);
  }
  return sum;
}

/** A copy of the field up to its first NUL. */
function untilNul(block: Uint8Array, from: number, to: number): Uint8Array {
  const end = block.indexOf(0, from);
  return end === from ? NOTHING : block.slice(from, end === -1 || end > to ? to : end);
}
