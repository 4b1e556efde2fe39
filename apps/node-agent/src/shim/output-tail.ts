/** The last bytes of an output. */
export class OutputTail {
  readonly #max: number;
  #held: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#max = maxBytes;
  }

  add(bytes: Uint8Array): void {
    const joined = Buffer.concat([this.#held, bytes]);
    this.#held = joined.length > this.#max ? Buffer.from(joined.subarray(joined.length - this.#max)) : joined;
  }

  text(): string {
    return this.#held.toString('utf8');
  }
}
