import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { byteKey, type ManifestEntry } from '@firecrew/artifact-capture';
import type { TreeSink } from './tree-sink.ts';

interface Span {
  readonly offset: number;
  readonly size: number;
}

const READ_BYTES = 256 * 1024;

/**
 * Takes the content of an archive into one nameless file, in whatever order it comes, to be read back by path. No name of
 * the archive ever reaches the file system.
 */
export class ContentSpool implements TreeSink {
  readonly #fd: number;
  readonly #files = new Map<string, Span>();
  readonly #targets = new Map<string, Uint8Array>();
  #end = 0;

  /** @param beside a file path on the disk to use; the spool lies next to it and is unlinked at once. */
  constructor(beside: string) {
    const name = `${beside}.${randomBytes(6).toString('hex')}.spool`;
    this.#fd = openSync(name, 'wx+', 0o600);
    unlinkSync(name);
  }

  directory(): void {}

  link(key: string, target: Uint8Array): void {
    this.#targets.set(key, target);
  }

  openFile(key: string, size: number): void {
    this.#files.set(key, { offset: this.#end, size });
  }

  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at, bytes.length - at, this.#end + at);
    this.#end += bytes.length;
  }

  closeFile(): void {}

  copy(key: string, source: string): void {
    const span = this.#files.get(source);
    if (span !== undefined) this.#files.set(key, span);
  }

  /** The target of a link. */
  targetOf(entry: ManifestEntry): Uint8Array {
    return this.#targets.get(byteKey(entry.path)) ?? new Uint8Array(0);
  }

  /** The content of a file, piece by piece. */
  *contentOf(entry: ManifestEntry): Generator<Buffer> {
    const span = this.#files.get(byteKey(entry.path)) ?? { offset: 0, size: 0 };
    for (let at = 0; at < span.size; ) {
      const piece = Buffer.alloc(Math.min(READ_BYTES, span.size - at));
      const read = readSync(this.#fd, piece, 0, piece.length, span.offset + at);
      if (read === 0) throw new Error('the spool is shorter than what was written');
      yield piece.subarray(0, read);
      at += read;
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
