import { Duplex } from 'node:stream';

export interface MemoryStreamOptions {
  /** Length of the next piece, at least 1; pieces arrive one by one. */
  readonly cut?: () => number;
  /** Total bytes, both ways together, after which both ends are destroyed without a word. */
  readonly killAfterBytes?: number;
}

class MemoryStream extends Duplex {
  other: MemoryStream | undefined;
  readonly #carry: (piece: Buffer, to: MemoryStream) => void;
  readonly #cut: () => number;
  #resume: (() => void) | undefined;

  constructor(cut: () => number, carry: (piece: Buffer, to: MemoryStream) => void) {
    super({ allowHalfOpen: false });
    this.#cut = cut;
    this.#carry = carry;
  }

  override _read(): void {
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const to = this.other;
    if (to === undefined) return;
    const step = (rest: Buffer): void => {
      if (rest.length === 0 || to.destroyed) return void setImmediate(done);
      const piece = Math.min(rest.length, this.#cut());
      this.#carry(rest.subarray(0, piece), to);
      if (to.readableLength >= to.readableHighWaterMark) to.#resume = () => step(rest.subarray(piece));
      else step(rest.subarray(piece));
    };
    step(Buffer.from(chunk));
  }

  override _final(done: () => void): void {
    this.other?.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (this.other?.destroyed === false) setImmediate(() => this.other?.destroy());
    done(error);
  }
}

/** Two ends of one byte stream in this process; closing one closes the other. */
export function memoryPair(options: MemoryStreamOptions = {}): [Duplex, Duplex] {
  let left = options.killAfterBytes ?? Number.POSITIVE_INFINITY;
  const cut = options.cut ?? (() => Number.POSITIVE_INFINITY);
  const ends: MemoryStream[] = [];
  const carry = (piece: Buffer, to: MemoryStream): void => {
    if (left === 0) return;
    const taken = piece.subarray(0, Math.min(piece.length, left));
    left -= taken.length;
    to.push(taken);
    if (left === 0) setImmediate(() => ends.forEach((end) => void end.destroy()));
  };
  const a = new MemoryStream(cut, carry);
  const b = new MemoryStream(cut, carry);
  ends.push(a, b);
  a.other = b;
  b.other = a;
  return [a, b];
}
