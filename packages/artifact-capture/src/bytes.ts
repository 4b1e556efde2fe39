const encoder = new TextEncoder();

/** UTF-8 bytes of a text. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Longest list of arguments that is handed over at once. */
const KEY_PIECE_BYTES = 4096;

/** One character per byte: a lossless map key for a byte name. */
export function byteKey(bytes: Uint8Array): string {
  if (bytes.length <= KEY_PIECE_BYTES) return keyOf(bytes);
  let key = '';
  for (let at = 0; at < bytes.length; at += KEY_PIECE_BYTES) key += keyOf(bytes.subarray(at, at + KEY_PIECE_BYTES));
  return key;
}

/** A plain array is what the call takes fastest, and this is asked several times for each entry of a tree. */
function keyOf(bytes: Uint8Array): string {
  const codes = new Array<number>(bytes.length);
  for (let at = 0; at < bytes.length; at += 1) codes[at] = bytes[at] ?? 0;
  return Reflect.apply(String.fromCharCode, undefined, codes);
}

/** The inverse of {@link byteKey}; a character above 0xff is not a byte and becomes its low eight bits. */
export function fromByteKey(key: string): Uint8Array {
  const bytes = new Uint8Array(key.length);
  for (let at = 0; at < key.length; at += 1) bytes[at] = key.charCodeAt(at) & 0xff;
  return bytes;
}

/** Order of two byte strings, shorter first when one begins the other: negative, 0 or positive. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let at = 0; at < shared; at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** One array of all parts, in order. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** True when the bytes are valid UTF-8. */
export function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
