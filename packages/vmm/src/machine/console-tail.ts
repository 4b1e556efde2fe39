/** Bytes of a guest's console that are kept; the guest decides what and how much it writes there. */
export const CONSOLE_TAIL_BYTES = 65_536;

/**
 * The end of what a guest wrote on its console. It is the guest's word, good for a message and for nothing else. Kept in a ring of one
 * size: neither an endless line nor endless pieces of a byte hold on to more.
 */
export class ConsoleTail {
  readonly #ring = Buffer.alloc(CONSOLE_TAIL_BYTES);
  /** Bytes that came, of which the last are in the ring. */
  #total = 0;

  add(part: Buffer): void {
    const kept = part.subarray(-CONSOLE_TAIL_BYTES);
    const at = (this.#total + part.length - kept.length) % CONSOLE_TAIL_BYTES;
    const first = kept.copy(this.#ring, at);
    kept.copy(this.#ring, 0, first);
    this.#total += part.length;
  }

  /** All that is kept, as it came. */
  text(): string {
    const at = this.#total % CONSOLE_TAIL_BYTES;
    const isFull = this.#total >= CONSOLE_TAIL_BYTES;
    return `${isFull ? this.#ring.toString('latin1', at) : ''}${this.#ring.toString('latin1', 0, at)}`;
  }

  /** The last lines, without anything that a terminal would act on. */
  lines(count: number): string[] {
    return this.text()
      .split(/[\r\n]+/)
      .map((line) => line.replace(/[^\x20-\x7e]/g, '?'))
      .filter((line) => line.trim() !== '')
      .slice(-count)
      .map((line) => line.slice(0, 200));
  }
}
