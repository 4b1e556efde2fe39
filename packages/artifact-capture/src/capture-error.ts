import type { CaptureErrorCode } from './reasons.ts';

/** A refusal with a stable code; `path` is the entry at fault as a readable text, never for opening anything. */
export class CaptureError extends Error {
  readonly code: CaptureErrorCode;
  readonly path: string | undefined;

  constructor(code: CaptureErrorCode, message: string, path?: Uint8Array) {
    const shown = path === undefined ? undefined : readableName(path);
    super(shown === undefined ? message : `${message}: ${shown}`);
    this.name = 'CaptureError';
    this.code = code;
    this.path = shown;
  }
}

/** Bytes of a readable name, at most. */
export const MAX_READABLE_NAME = 256;

/** A byte name as printable ASCII: other bytes as `\xNN`, cut at {@link MAX_READABLE_NAME} bytes. */
export function readableName(name: Uint8Array): string {
  let text = '';
  for (const byte of name.subarray(0, MAX_READABLE_NAME)) {
    const printable = byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
    text += printable ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return name.length > MAX_READABLE_NAME ? `${text}...` : text;
}
