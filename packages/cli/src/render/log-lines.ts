import { afterReturn, cleanLine } from './clean-text.ts';

/** Characters of an unfinished line that are held back before it is shown as it is. */
export const HELD_MAX_CHARS = 16_384;

/** Makes lines of the output of one attempt, which comes in pieces cut anywhere, also inside a character. */
export class LogLines {
  readonly #decoder = new TextDecoder();
  #held = '';

  /** The lines that `bytes` completes, without control characters. */
  push(bytes: Uint8Array): string[] {
    this.#held += this.#decoder.decode(bytes, { stream: true });
    const parts = this.#held.split('\n');
    this.#held = parts.pop() ?? '';
    if (this.#held.length > HELD_MAX_CHARS) {
      parts.push(this.#held);
      this.#held = '';
    }
    return parts.map((line) => cleanLine(afterReturn(line)));
  }

  /** What is left at the end. */
  end(): string[] {
    const rest = this.#held + this.#decoder.decode();
    this.#held = '';
    return rest === '' ? [] : [cleanLine(afterReturn(rest))];
  }
}
