import type { TurnEgress } from '@firecrew/protocol';

/** Key of an attempt: its number is the fencing token within an epoch. */
export interface TurnKey {
  readonly turnId: string;
  readonly attempt: number;
  readonly epoch: number;
}

/** An order to start that is being carried out: its lease is renewed while its inputs are on their way, and it can be called off. */
export class StartingTurn {
  readonly key: TurnKey;
  /** What it may reach, where that has changed since it was ordered. */
  egress: TurnEgress | undefined;
  readonly #calledOff = new AbortController();
  #renewedAtMs: number;
  #reason: 'cancelled' | 'superseded' | undefined;

  constructor(key: TurnKey, renewedAtMs: number) {
    this.key = key;
    this.#renewedAtMs = renewedAtMs;
  }

  /** When the renewal that the lease counts from was sent, boot time in `ms`. */
  get renewedAtMs(): number {
    return this.#renewedAtMs;
  }

  /** Why the order was called off; undefined while it stands. */
  get reason(): 'cancelled' | 'superseded' | undefined {
    return this.#reason;
  }

  get signal(): AbortSignal {
    return this.#calledOff.signal;
  }

  renewed(sentAtMs: number): void {
    this.#renewedAtMs = Math.max(this.#renewedAtMs, sentAtMs);
  }

  callOff(reason: 'cancelled' | 'superseded'): void {
    this.#reason ??= reason;
    this.#calledOff.abort();
  }
}
