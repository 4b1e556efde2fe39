/**
 * Text of a path, a link or a name inside an image: one character for each byte (latin1), so that names which are no UTF-8 stay apart
 * and the order of the texts is the order of the bytes.
 */
export type ByteText = string;

export type TarEntryType = 'file' | 'hard-link' | 'symbolic-link' | 'character-device' | 'block-device' | 'directory' | 'fifo';

/** What is kept of a file besides its content and its name. */
export interface EntryMetadata {
  /** Permission bits with set-uid, set-gid and sticky: at most 0o7777. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Whole seconds since 1970, clamped to what squashfs can hold. */
  readonly mtime: number;
  /** Extended attributes that are kept, by name. */
  readonly xattrs: ReadonlyMap<ByteText, Buffer>;
}

/** One entry of a tar archive with its extension headers applied. */
export interface TarEntry extends EntryMetadata {
  readonly type: TarEntryType;
  /** As the archive writes it. */
  readonly path: ByteText;
  /** Bytes of content; 0 for everything but files. */
  readonly size: number;
  /** Target of a symbolic link, or the earlier entry a hard link shares. */
  readonly linkName: ByteText;
  readonly deviceMajor: number;
  readonly deviceMinor: number;
}

/** Bytes as {@link ByteText}. */
export function byteText(bytes: Uint8Array): ByteText {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/** The bytes of a {@link ByteText}. */
export function textBytes(text: ByteText): Buffer {
  return Buffer.from(text, 'latin1');
}

/** A {@link ByteText} for people: UTF-8 where it is, cut to 200 characters. */
export function readableText(text: ByteText): string {
  const shown = JSON.stringify(textBytes(text).toString('utf8'));
  return shown.length > 200 ? `${shown.slice(0, 199)}…` : shown;
}

/** The order of bytes. */
export function compareText(a: ByteText, b: ByteText): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
