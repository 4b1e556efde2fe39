import { closeSync, openSync, read, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { CodedError } from '@firecrew/base';
import { FOLLOW_CHUNK_BYTES } from './limits.ts';

const readAt = promisify(read);

/**
 * The output of one exec as an append-only file with offsets. The first `limitBytes` are kept, later bytes are dropped and counted.
 * A byte is in the file before any reader hears of it, so no flush can be lost.
 */
export class OutputLog {
  readonly #fd: number;
  readonly #limitBytes: number;
  readonly #waiting = new Set<() => void>();
  #bytes = 0;
  #dropped = 0;
  #isEnded = false;

  /** The file must not exist. */
  constructor(path: string, limitBytes: number) {
    this.#fd = openSync(path, 'ax+', 0o600);
    this.#limitBytes = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get droppedBytes(): number {
    return this.#dropped;
  }

  append(part: Uint8Array): void {
    const room = Math.min(part.length, this.#limitBytes - this.#bytes);
    let written = 0;
    try {
      while (written < room) written += writeSync(this.#fd, part, written, room - written);
    } catch {
      // A full disk must not end the exec; what did not fit is counted like all else that is dropped.
    }
    this.#bytes += written;
    this.#dropped += part.length - written;
    this.#wake();
  }

  /** Nothing more will come. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  /** The bytes from `offset` on, as they come, to the end of the exec. Throws `log_changed` when the file was cut by somebody else. */
  async *readFrom(offset: number): AsyncGenerator<Buffer> {
    let at = offset;
    for (;;) {
      // Asked before the length is looked at: an end that comes in between is seen in the next turn.
      const isEnded = this.#isEnded;
      if (at < this.#bytes) {
        const { bytesRead, buffer } = await readAt(
          this.#fd,
          Buffer.allocUnsafe(FOLLOW_CHUNK_BYTES),
          0,
          Math.min(FOLLOW_CHUNK_BYTES, this.#bytes - at),
          at,
        );
        if (bytesRead === 0) throw new CodedError('log_changed', `The output file ends before offset ${at}.`);
        at += bytesRead;
        yield buffer.subarray(0, bytesRead);
      } else if (isEnded) return;
      else await this.#change();
    }
  }

  /** Closes the file; no reader may be left. */
  close(): void {
    this.end();
    closeSync(this.#fd);
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
    });
  }

  #wake(): void {
    for (const resume of [...this.#waiting]) resume();
    this.#waiting.clear();
  }
}
