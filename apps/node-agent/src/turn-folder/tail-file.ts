import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { codeOf } from '@firecrew/base';

const NOTHING = Buffer.alloc(0);

/**
 * Reads what another process appends to a file, which may come later. It is kept open, and read in one go: what was just written is in
 * memory, and a way through the thread pool would take longer than the read.
 */
export class TailFile {
  readonly #path: string;
  #fd: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** What there is from `offset` on, at most `max` bytes; nothing while the file is not there. Throws what else Node does. */
  read(offset: number, max: number): Buffer {
    this.#fd ??= openIfThere(this.#path);
    if (this.#fd === undefined) return NOTHING;
    const length = Math.min(max, fstatSync(this.#fd).size - offset);
    if (length <= 0) return NOTHING;
    const bytes = Buffer.allocUnsafe(length);
    return bytes.subarray(0, readSync(this.#fd, bytes, 0, length, offset));
  }

  /** Lets go of the file; a later read opens it again. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
