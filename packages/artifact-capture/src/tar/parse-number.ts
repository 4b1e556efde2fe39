import { CaptureError } from '../capture-error.ts';

const SPACE = 0x20;
const ZERO = 0x30;

/**
 * A numeric header field, the bytes of `block` from `from` up to `to`: blanks, octal digits, then blanks or NULs to the end; or base-256
 * when the top bit is set.
 * @throws CaptureError `bad_number` on anything else, an empty field, a negative value, or one past 2^53-1.
 */
export function parseNumber(block: Uint8Array, from: number, to: number): number {
  if ((block[from] ?? 0) & 0x80) return parseBase256(block.subarray(from, to));
  let at = from;
  while (at < to && block[at] === SPACE) at += 1;
  const first = at;
  let value = 0;
  for (; at < to; at += 1) {
    const digit = (block[at] ?? 0) - ZERO;
    if (digit < 0 || digit > 7) break;
    value = value * 8 + digit;
  }
  if (at === first) throw new CaptureError('bad_number', 'a numeric field holds no digits');
  for (; at < to; at += 1) {
    if (block[at] !== 0 && block[at] !== SPACE) throw new CaptureError('bad_number', 'a numeric field holds something else than digits');
  }
  return value;
}

/** Decimal digits only, up to 2^53-1, as in a pax record. @throws CaptureError `bad_number`. */
export function parseDecimal(text: string): number {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw new CaptureError('bad_number', 'a decimal number is not well-formed');
  return value;
}

function parseBase256(field: Uint8Array): number {
  if (field[0] !== 0x80) throw new CaptureError('bad_number', 'a number is negative or too large');
  let value = 0;
  for (const byte of field.subarray(1)) {
    value = value * 256 + byte;
    if (!Number.isSafeInteger(value)) throw new CaptureError('bad_number', 'a number is too large');
  }
  return value;
}
