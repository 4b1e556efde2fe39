import { byteKey, type TarEvent } from '@firecrew/artifact-capture';

/** Bytes in order: a Node stream, a generator, or an array of chunks. A chunk is not looked at after the next was asked for. */
export type ByteStream = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Hands bytes to `take` as they come, each piece valid during the call alone; settles after the last. Rejects with what `take` throws, and takes no more then. */
export type BytePour = (take: (bytes: Uint8Array) => void) => Promise<void>;

/** Bytes either way. */
export type ByteSource = ByteStream | BytePour;

/**
 * Where the accepted entries of an archive go. Calls come strictly in archive order; all are synchronous. A `key` is a path, one character
 * for each of its bytes. Content may not be kept beyond the call.
 */
export interface TreeSink {
  directory(key: string): void;
  link(key: string, target: Uint8Array): void;
  openFile(key: string, size: number, executable: boolean): void;
  write(bytes: Uint8Array): void;
  closeFile(): void;
  copy(key: string, source: string, size: number, executable: boolean): void;
}

/** Tells the sink of an entry; a file's content and its end follow. */
export function placeEntry(sink: TreeSink, key: string, entry: Extract<TarEvent, { kind: 'entry' }>['entry']): void {
  if (entry.type === 'directory') sink.directory(key);
  else if (entry.type === 'link') sink.link(key, entry.target);
  else if (entry.type === 'copy') sink.copy(key, byteKey(entry.source), entry.size, entry.executable);
  else sink.openFile(key, entry.size, entry.executable);
}
