/** Bytes of a guest's console that are kept; the guest decides what and how much it writes there. */
export const CONSOLE_TAIL_BYTES = 65_536;

/** The end of what a guest wrote on its console. It is the guest's word, good for a message and for nothing else. */
export class ConsoleTail {
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  add(part: Buffer): void {
    this.#parts.push(part.subarray(-CONSOLE_TAIL_BYTES));
    this.#bytes += Math.min(part.length, CONSOLE_TAIL_BYTES);
    while (this.#parts.length > 1 && this.#bytes - (this.#parts[0]?.length ?? 0) >= CONSOLE_TAIL_BYTES) {
      this.#bytes -= this.#parts.shift()?.length ?? 0;
    }
  }

  /** All that is kept, as it came. */
  text(): string {
    return Buffer.concat(this.#parts).subarray(-CONSOLE_TAIL_BYTES).toString('latin1');
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
