import { isUtf8, utf8 } from './bytes.ts';

/** Where the bytes of a name that are not UTF-8 go: 0x80 becomes U+DC80, and so on. No UTF-8 text holds these alone. */
const ESCAPE = 0xdc00;
const MAX_SEQUENCE_BYTES = 4;

/**
 * The text of a byte name, for rules that are written as text, such as globs: UTF-8 where it is that, and each other byte as a lone surrogate
 * (U+DC80 to U+DCFF). Two names never become one text, and {@link nameBytes} gives the bytes back. Not for databases or terminals.
 */
export function nameText(name: Uint8Array): string {
  if (isUtf8(name)) return decode(name);
  let text = '';
  for (let at = 0; at < name.length; ) {
    const length = sequenceAt(name, at);
    text += length === 0 ? String.fromCharCode(ESCAPE + (name[at] ?? 0)) : decode(name.subarray(at, at + length));
    at += Math.max(length, 1);
  }
  return text;
}

/** The bytes of a text of {@link nameText}. */
export function nameBytes(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    if (code >= ESCAPE + 0x80 && code <= ESCAPE + 0xff) bytes.push(code - ESCAPE);
    else bytes.push(...utf8(character));
  }
  return Uint8Array.from(bytes);
}

/** Bytes of the one character that begins here, or 0 when none does. */
function sequenceAt(name: Uint8Array, at: number): number {
  for (let length = 1; length <= MAX_SEQUENCE_BYTES && at + length <= name.length; length += 1)
    if (isUtf8(name.subarray(at, at + length))) return length;
  return 0;
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
