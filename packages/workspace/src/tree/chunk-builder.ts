import type { Hash } from 'node:crypto';
import { readSync } from 'node:fs';

/** Bytes of one chunk of a packed stream; the last may be shorter. */
export const PACK_CHUNK_BYTES = 256 * 1024;

/** Gathers a stream in chunks of one size. Content is read straight into its chunk, so no byte of it is copied again. */
export class ChunkBuilder {
  #chunk: Buffer | undefined;
  #used = 0;

  /** Adds bytes; yields the chunks that became full. */
  *add(bytes: Uint8Array): Generator<Buffer> {
    for (let at = 0; at < bytes.length; ) {
      const chunk = this.#room();
      const end = Math.min(bytes.length, at + chunk.length - this.#used);
      chunk.set(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end), this.#used);
      this.#used += end - at;
      at = end;
      yield* this.#full();
    }
  }

  /** Adds exactly `size` bytes: what the file holds, then zeros. */
  *addFile(fd: number, size: number, hash: Hash | undefined): Generator<Buffer> {
    let hasEnded = false;
    for (let at = 0; at < size; ) {
      const chunk = this.#room();
      const from = this.#used;
      const end = Math.min(chunk.length, from + size - at);
      let filled = from;
      while (!hasEnded && filled < end) {
        const read = readSync(fd, chunk, filled, end - filled, at + filled - from);
        if (read === 0) hasEnded = true;
        filled += read;
      }
      if (filled < end) chunk.fill(0, filled, end);
      hash?.update(chunk.subarray(from, end));
      this.#used = end;
      at += end - from;
      yield* this.#full();
    }
  }

  /** The last, shorter chunk. */
  *flush(): Generator<Buffer> {
    if (this.#chunk !== undefined && this.#used > 0) yield this.#chunk.subarray(0, this.#used);
    this.#chunk = undefined;
    this.#used = 0;
  }

  #room(): Buffer {
    this.#chunk ??= Buffer.allocUnsafeSlow(PACK_CHUNK_BYTES);
    return this.#chunk;
  }

  *#full(): Generator<Buffer> {
    if (this.#used === PACK_CHUNK_BYTES) yield* this.flush();
  }
}
