import type { LinkClock } from './clock.ts';
import { ProtocolViolation } from './reasons.ts';

interface Waiting {
  resolve(ms: number): void;
  reject(error: Error): void;
}

/** The PINGs that wait for their PONG. */
export class PingTable {
  readonly #clock: LinkClock;
  readonly #sent = new Map<bigint, { readonly at: number; readonly waiting: Waiting | undefined }>();
  #next = 1n;

  constructor(clock: LinkClock) {
    this.#clock = clock;
  }

  /** The token of a new PING. */
  add(waiting: Waiting | undefined): bigint {
    const token = this.#next;
    this.#next += 1n;
    this.#sent.set(token, { at: this.#clock.now(), waiting });
    return token;
  }

  /** Takes a PONG. Throws `unexpected_pong` for a token that no PING carried. */
  answer(token: bigint): void {
    const ping = this.#sent.get(token);
    if (ping === undefined) throw new ProtocolViolation('unexpected_pong', 'The peer answered a PING that was not sent.');
    this.#sent.delete(token);
    ping.waiting?.resolve(this.#clock.now() - ping.at);
  }

  fail(error: Error): void {
    for (const ping of this.#sent.values()) ping.waiting?.reject(error);
    this.#sent.clear();
  }
}
