import { readSync } from 'node:fs';

/**
 * Bytes of one chunk of a packed stream, a multiple of the blocks of a tar; the last may be shorter. A socket takes one without waiting for its
 * reader, so that the next is packed while this one is read.
 */
export const PACK_CHUNK_BYTES = 128 * 1024;

/**
 * Gathers a stream in chunks of one size, all in the same memory: what `take` gave is valid until something is added. Content is read
 * straight into its chunk, so no byte of it is copied again.
 */
export class ChunkBuilder {
  readonly #chunk = Buffer.allocUnsafeSlow(PACK_CHUNK_BYTES);
  #used = 0;

  /** Bytes that fit in. */
  get room(): number {
    return PACK_CHUNK_BYTES - this.#used;
  }

  /** Adds as much of `bytes` as fits; says how much that is. */
  add(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.room);
    this.#chunk.set(count === bytes.length ? bytes : bytes.subarray(0, count), this.#used);
    this.#used += count;
    return count;
  }

  /** Lets `write` fill the next `length` bytes, for which there must be room; they count when it says true. */
  addWith(length: number, write: (chunk: Uint8Array, at: number) => boolean): boolean {
    const isWritten = write(this.#chunk, this.#used);
    if (isWritten) this.#used += length;
    return isWritten;
  }

  addZeros(count: number): void {
    this.#chunk.fill(0, this.#used, this.#used + count);
    this.#used += count;
  }

  /** Adds what fits of the next `size` bytes of a file from `position` on: what it holds, then zeros. */
  addContent(fd: number, position: number, size: number): Buffer {
    const from = this.#used;
    const end = from + Math.min(size, this.room);
    let filled = from;
    while (filled < end) {
      const read = readSync(fd, this.#chunk, filled, end - filled, position + filled - from);
      if (read === 0) break;
      filled += read;
    }
    if (filled < end) this.#chunk.fill(0, filled, end);
    this.#used = end;
    return this.#chunk.subarray(from, end);
  }

  /** What was gathered since the last call. */
  take(): Buffer {
    const chunk = this.#chunk.subarray(0, this.#used);
    this.#used = 0;
    return chunk;
  }
}
