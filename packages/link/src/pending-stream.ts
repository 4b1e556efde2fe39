import type { Duplex } from 'node:stream';
import type { LinkClock } from './clock.ts';
import type { LinkLimits } from './limits.ts';
import { PREAMBLE_BYTES, PREAMBLE_MAGIC } from './preamble.ts';
import type { LinkRefusal, RefusalReason } from './reasons.ts';
import { MagicScanner } from './scan-magic.ts';

export interface PendingEvents {
  /** A whole preamble came; the events of the stream are the receiver's from here on. */
  onPreamble(block: Uint8Array, rest: Uint8Array): void;
  onRefused(refusal: LinkRefusal): void;
}

/**
 * A stream whose preamble has not arrived: looked at within a bound of bytes and of time. Exactly one event comes. `lasting` is a
 * stream that is there before its peer is (a serial port of a machine that still boots): its time begins with its first byte.
 */
export class PendingStream {
  readonly #stream: Duplex;
  readonly #limits: Required<LinkLimits>;
  readonly #events: PendingEvents;
  readonly #scanner: MagicScanner;
  readonly #clock: LinkClock;
  #cancel: (() => void) | undefined;
  #over = false;

  constructor(stream: Duplex, clock: LinkClock, limits: Required<LinkLimits>, events: PendingEvents, lasting = false) {
    this.#stream = stream;
    this.#clock = clock;
    this.#limits = limits;
    this.#events = events;
    const scan = { magic: PREAMBLE_MAGIC, blockBytes: PREAMBLE_BYTES, maxStaleBytes: limits.maxStaleBytes, wanted: () => true };
    this.#scanner = new MagicScanner(scan);
    if (!lasting) this.#startTime();
  }

  start(rest: Uint8Array): void {
    this.#stream.on('data', this.#onData).on('end', this.#onCut).on('close', this.#onCut).on('error', this.#onCut);
    if (this.#stream.closed) {
      this.#onCut();
      return;
    }
    this.#stream.pause();
    // In a turn of its own: a chunk full of preambles would nest one session in another.
    setImmediate(() => {
      if (!this.#over && rest.length > 0) this.#onData(rest);
      if (!this.#over) this.#stream.resume();
    });
  }

  refuse(reason: RefusalReason, message: string): void {
    if (this.#leave()) this.#events.onRefused({ reason, message });
  }

  readonly #onCut = (): void => this.refuse('preamble_cut', 'The stream ended before its preamble was whole.');

  #startTime(): void {
    const { preambleTimeoutMs } = this.#limits;
    this.#cancel ??= this.#clock.after(preambleTimeoutMs, () =>
      this.refuse('preamble_timeout', `No preamble came within ${preambleTimeoutMs} ms.`),
    );
  }

  readonly #onData = (chunk: Uint8Array): void => {
    this.#startTime();
    const result = this.#scanner.push(chunk);
    if (result.state === 'too_much') {
      this.refuse('preamble_not_found', `No preamble came within ${this.#limits.maxStaleBytes} bytes.`);
    }
    if (result.state === 'found' && this.#leave()) this.#events.onPreamble(result.block, result.rest);
  };

  #leave(): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#cancel?.();
    this.#stream.off('data', this.#onData).off('end', this.#onCut).off('close', this.#onCut).off('error', this.#onCut);
    return true;
  }
}
