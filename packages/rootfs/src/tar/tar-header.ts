import { malformedArchive } from './refusals.ts';
import { type ByteText, byteText } from './tar-entry.ts';
import { parseTarNumber } from './tar-number.ts';

/** Bytes of a block, the unit of the format. */
export const TAR_BLOCK_BYTES = 512;

/** What one header block says, before extension headers are applied. */
export interface TarHeader {
  readonly name: ByteText;
  readonly typeFlag: string;
  readonly linkName: ByteText;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly mtime: number;
  readonly deviceMajor: number;
  readonly deviceMinor: number;
}

const USTAR = 'ustar\x0000';
const GNU = 'ustar  \0';
const V7 = '\0'.repeat(8);
const CHECKSUM_FROM = 148;
const CHECKSUM_TO = 156;

/** Reads one header block of the ustar, GNU or v7 form. Throws `layer_malformed`. */
export function parseTarHeader(block: Uint8Array): TarHeader {
  checkSum(block);
  const magic = byteText(block.subarray(257, 265));
  if (magic !== USTAR && magic !== GNU && magic !== V7) throw malformedArchive('a header is of an unknown form');
  const name = untilNul(block.subarray(0, 100));
  const prefix = magic === USTAR ? untilNul(block.subarray(345, 500)) : '';
  const isV7 = magic === V7;
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    typeFlag: String.fromCharCode(block[156] ?? 0),
    linkName: untilNul(block.subarray(157, 257)),
    mode: parseTarNumber(block.subarray(100, 108)),
    uid: parseTarNumber(block.subarray(108, 116)),
    gid: parseTarNumber(block.subarray(116, 124)),
    size: parseTarNumber(block.subarray(124, 136)),
    mtime: parseTarNumber(block.subarray(136, 148)),
    deviceMajor: isV7 ? 0 : parseTarNumber(block.subarray(329, 337)),
    deviceMinor: isV7 ? 0 : parseTarNumber(block.subarray(337, 345)),
  };
}

/** True when a block holds zeros only, as those of the end mark do. */
export function isZeroBlock(block: Uint8Array): boolean {
  return block.every((byte) => byte === 0);
}

/** Bytes of padding behind content of this size. */
export function paddingOf(size: number): number {
  return (TAR_BLOCK_BYTES - (size % TAR_BLOCK_BYTES)) % TAR_BLOCK_BYTES;
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
  const stated = parseTarNumber(block.subarray(CHECKSUM_FROM, CHECKSUM_TO));
  if (stated !== unsigned && stated !== signed) throw malformedArchive('the checksum of a header is wrong');
}

function untilNul(field: Uint8Array): ByteText {
  const end = field.indexOf(0);
  return byteText(end === -1 ? field : field.subarray(0, end));
}
