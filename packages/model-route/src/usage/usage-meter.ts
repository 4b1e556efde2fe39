import type { ModelFormat } from '../formats.ts';
import { EventReader } from './event-reader.ts';
import { readUsage } from './read-usage.ts';
import { NO_USAGE, type TokenUsage } from './token-usage.ts';

/** Longest answer that is no stream and whose usage is read, in `bytes`. */
export const ANSWER_MAX_BYTES = 32 * 1024 * 1024;

/** Follows one answer and says what it cost. Its memory is bounded; what it could not read it does not guess. */
export class UsageMeter {
  readonly #format: Exclude<ModelFormat, 'pass_through'>;
  readonly #events: EventReader | undefined;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #usage: TokenUsage = NO_USAGE;
  #isFinal = false;
  #isReadable = true;

  constructor(format: Exclude<ModelFormat, 'pass_through'>, isEventStream: boolean) {
    this.#format = format;
    if (!isEventStream) return;
    this.#events = new EventReader(
      (data) => this.#onData(data),
      () => {
        this.#isReadable = false;
      },
    );
  }

  push(bytes: Uint8Array): void {
    if (this.#events !== undefined) this.#events.push(bytes);
    else if (this.#bytes + bytes.length > ANSWER_MAX_BYTES) {
      this.#isReadable = false;
      this.#parts = [];
    } else if (this.#isReadable) {
      this.#bytes += bytes.length;
      this.#parts.push(bytes.slice());
    }
  }

  /** The usage of an answer that came whole, or undefined where it does not say all of it. */
  end(): TokenUsage | undefined {
    if (this.#events === undefined) this.#onData(this.#text());
    else this.#events.end();
    return this.#isReadable && this.#isFinal ? this.#usage : undefined;
  }

  #text(): string {
    const whole = new Uint8Array(this.#bytes);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    return new TextDecoder().decode(whole);
  }

  #onData(text: string): void {
    // Most events of a stream hold a few words of text: only those that can speak of usage are parsed.
    if (!text.includes('"usage')) return;
    try {
      const documents: unknown = JSON.parse(text);
      for (const document of Array.isArray(documents) ? documents : [documents]) this.#onDocument(document);
    } catch {
      this.#isReadable = false;
    }
  }

  #onDocument(document: unknown): void {
    const seen = readUsage(this.#format, document, this.#usage);
    if (seen === undefined) return;
    this.#usage = seen.usage;
    this.#isFinal = this.#isFinal || seen.isFinal;
  }
}
