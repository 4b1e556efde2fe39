/** Smallest and largest block that small parts are gathered in, in bytes. */
const MIN_BLOCK_BYTES = 1_024;
const MAX_BLOCK_BYTES = 16_384;
/** A part is kept as a view while the memory behind it is at most this many times its length. */
const VIEW_RATIO = 4;

/** `part`, or a copy of it where keeping the view would hold on to far more memory than its length. */
export function ownPart(part: Uint8Array): Uint8Array {
  return part.byteLength * VIEW_RATIO >= part.buffer.byteLength ? part : new Uint8Array(part);
}

/**
 * Received bytes that the reader has not asked for. A peer that sends them one at a time, each beside a large frame for
 * another stream, makes it hold a small multiple of its byte length and no more.
 */
export class Inbox {
  #chunks: Uint8Array[] = [];
  #first = 0;
  #block: Uint8Array | undefined;
  #blockUsed = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Takes a part; says whether it is kept as the view that it is, and not as a copy. */
  add(part: Uint8Array): boolean {
    this.#bytes += part.length;
    if (part.length >= MAX_BLOCK_BYTES && ownPart(part) === part) {
      this.#seal();
      this.#chunks.push(part);
      return true;
    }
    let rest = part;
    while (rest.length > 0) {
      const block = this.#roomyBlock(rest.length);
      const take = Math.min(rest.length, block.length - this.#blockUsed);
      block.set(rest.subarray(0, take), this.#blockUsed);
      this.#blockUsed += take;
      rest = rest.subarray(take);
    }
    return false;
  }

  /** The oldest bytes, or undefined when there are none. */
  take(): Uint8Array | undefined {
    if (this.#first === this.#chunks.length) this.#seal();
    const chunk = this.#chunks[this.#first];
    if (chunk === undefined) return undefined;
    this.#first += 1;
    if (this.#first === this.#chunks.length) {
      this.#chunks = [];
      this.#first = 0;
    }
    this.#bytes -= chunk.length;
    return chunk;
  }

  clear(): void {
    this.#chunks = [];
    this.#first = 0;
    this.#block = undefined;
    this.#blockUsed = 0;
    this.#bytes = 0;
  }

  #roomyBlock(wanted: number): Uint8Array {
    const current = this.#block;
    if (current !== undefined && this.#blockUsed < current.length) return current;
    this.#seal();
    const last = current?.length ?? MIN_BLOCK_BYTES / 2;
    const block = new Uint8Array(Math.min(MAX_BLOCK_BYTES, Math.max(wanted, last * 2, MIN_BLOCK_BYTES)));
    this.#block = block;
    return block;
  }

  #seal(): void {
    if (this.#block !== undefined && this.#blockUsed > 0) this.#chunks.push(this.#block.subarray(0, this.#blockUsed));
    this.#block = undefined;
    this.#blockUsed = 0;
  }
}
