import { CaptureError } from '../capture-error.ts';

const SPACE = 0x20;

/**
 * A numeric header field: blanks, octal digits, then blanks or NULs to the end; or base-256 when the top bit is set.
 * @throws CaptureError `bad_number` on anything else, an empty field, a negative value, or one past 2^53-1.
 */
export function parseNumber(field: Uint8Array): number {
  const first = field[0] ?? 0;
  if (first & 0x80) return parseBase256(field);
  let at = 0;
  while (field[at] === SPACE) at += 1;
  const from = at;
  let value = 0;
  for (let digit = digitAt(field, at); digit >= 0; digit = digitAt(field, at)) {
    value = value * 8 + digit;
    at += 1;
  }
  if (at === from) throw new CaptureError('bad_number', 'a numeric field holds no digits');
  for (; at < field.length; at += 1) {
    if (field[at] !== 0 && field[at] !== SPACE) throw new CaptureError('bad_number', 'a numeric field holds something else than digits');
  }
  return value;
}

/** Decimal digits only, up to 2^53-1, as in a pax record. @throws CaptureError `bad_number`. */
export function parseDecimal(text: string): number {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw new CaptureError('bad_number', 'a decimal number is not well-formed');
  return value;
}

function digitAt(field: Uint8Array, at: number): number {
  const byte = field[at];
  return byte !== undefined && byte >= 0x30 && byte <= 0x37 ? byte - 0x30 : -1;
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
