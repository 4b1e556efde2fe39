/** Bytes in order: a Node stream, a generator, or an array of chunks. */
export type ByteStream = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Where the accepted entries of an archive go. Calls come strictly in archive order; all are synchronous. */
export interface TreeSink {
  directory(path: Uint8Array): void;
  link(path: Uint8Array, target: Uint8Array): void;
  openFile(path: Uint8Array, size: number, executable: boolean): void;
  write(bytes: Uint8Array): void;
  closeFile(): void;
  copy(path: Uint8Array, source: Uint8Array, size: number, executable: boolean): void;
}
