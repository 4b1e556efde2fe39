import type { BodyRefusal } from '../reasons.ts';

/** Nesting of a body. */
export const BODY_DEPTH_MAX = 96;
/** Values of a body, counted by what separates them: a short text can make a large tree. */
export const BODY_VALUES_MAX = 500_000;

const [QUOTE, BACKSLASH, COMMA, OPEN_LIST, CLOSE_LIST, OPEN, CLOSE] = [0x22, 0x5c, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d];

/** Looks at the bytes of a JSON text before anything is made of it. Gives why it must not be parsed, or undefined. */
export function scanJson(bytes: Uint8Array): BodyRefusal | undefined {
  let depth = 0;
  let values = 0;
  let inText = false;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (inText) {
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === COMMA) values += 1;
    else if (byte === OPEN || byte === OPEN_LIST) {
      depth += 1;
      values += 1;
      if (depth > BODY_DEPTH_MAX) return 'body_too_deep';
    } else if (byte === CLOSE || byte === CLOSE_LIST) depth -= 1;
    if (values > BODY_VALUES_MAX) return 'body_too_complex';
  }
  return undefined;
}
