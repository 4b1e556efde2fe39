import { malformedArchive } from './refusals.ts';

/**
 * A numeric header field: blanks, octal digits, then blanks or NULs; or base-256 when its top bit is set, negative when the next one is.
 * An empty field is 0: owners and devices of historic archives are left out. Throws `layer_malformed` on anything else and past 2^53-1.
 */
export function parseTarNumber(field: Uint8Array): number {
  if (((field[0] ?? 0) & 0x80) !== 0) return parseBase256(field);
  const text = Buffer.from(field).toString('latin1');
  const digits = /^ *([0-7]*)[ \0]*$/.exec(text)?.[1];
  if (digits === undefined) throw malformedArchive('a numeric field holds something else than digits');
  const value = digits === '' ? 0 : Number.parseInt(digits, 8);
  if (!Number.isSafeInteger(value)) throw malformedArchive('a number is too large');
  return value;
}

function parseBase256(field: Uint8Array): number {
  const isNegative = field[0] === 0xff;
  if (!isNegative && field[0] !== 0x80) throw malformedArchive('a number is too large');
  let value = 0;
  for (const byte of field.subarray(1)) {
    // Of a negative number in two's complement the distance to -1 is counted.
    value = value * 256 + (isNegative ? 255 - byte : byte);
    if (!Number.isSafeInteger(value)) throw malformedArchive('a number is too large');
  }
  return isNegative ? -value - 1 : value;
}

/** A count in decimal digits, as in a pax record: 0 to 2^53-1. Throws `layer_malformed`. */
export function parsePaxCount(text: string): number {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw malformedArchive('a decimal number of an extension header is not well-formed');
  return value;
}

/** A time in seconds with fractions, as in a pax record, cut to whole seconds. Throws `layer_malformed`. */
export function parsePaxTime(text: string): number {
  if (!/^-?[0-9]{1,15}(\.[0-9]*)?$/.test(text)) throw malformedArchive('a time of an extension header is not well-formed');
  return Math.floor(Number(text));
}
