const decoder = new TextDecoder('latin1');
const encoder = new TextEncoder();

/** A path as lower-case text, one character per byte, without `./` and doubled slashes: for comparing with ASCII rules alone. */
export function asciiFolded(path: string | Uint8Array): string {
  const text = decoder.decode(typeof path === 'string' ? encoder.encode(path) : path);
  const parts = text.split('/').filter((part) => part !== '' && part !== '.');
  return parts.join('/').replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
