import { closeSync, openSync, writeSync } from 'node:fs';

/** The attempt's log: bytes in the order in which they came, at most `maxBytes`; what comes after is counted and dropped. */
export class LogSpool {
  readonly #fd: number;
  readonly #maxBytes: number;
  #bytes = 0;
  #dropped = 0;

  constructor(file: string, maxBytes: number) {
    this.#fd = openSync(file, 'ax', 0o600);
    this.#maxBytes = maxBytes;
  }

  /** Length of the file in bytes: the offset of the next byte. */
  get bytes(): number {
    return this.#bytes;
  }

  get dropped(): number {
    return this.#dropped;
  }

  write(bytes: Uint8Array): void {
    const room = Math.max(0, this.#maxBytes - this.#bytes);
    const kept = bytes.subarray(0, room);
    for (let at = 0; at < kept.length; at += writeSync(this.#fd, kept, at)) {
      // A short write goes on where it stopped.
    }
    this.#bytes += kept.length;
    this.#dropped += bytes.length - kept.length;
  }

  /** A line of the platform's own between the outputs of commands. */
  heading(text: string): void {
    this.write(Buffer.from(`== ${text}\n`));
  }

  close(): void {
    closeSync(this.#fd);
  }
}
