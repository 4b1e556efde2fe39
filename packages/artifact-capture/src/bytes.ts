const encoder = new TextEncoder();

/** UTF-8 bytes of a text. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

/** One character per byte: a lossless map key for a byte name. */
export function byteKey(bytes: Uint8Array): string {
  let key = '';
  // Not spread: that goes through an iterator, and this is asked several times for each entry of a tree.
  for (let at = 0; at < bytes.length; at += 4096) key += Reflect.apply(String.fromCharCode, undefined, bytes.subarray(at, at + 4096));
  return key;
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
