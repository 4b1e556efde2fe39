/** Boot time in `ms`: it goes on during suspend, so a thawed process sees how long it was away. */
export type BootClock = () => number;

/** The right of an attempt to act. It is renewed from outside and counted from when the renewal was sent to the server. */
export class Lease {
  readonly #clock: BootClock;
  readonly #selfStopAtMs: number;
  #sentAtMs: number;
  #lost = false;

  constructor(clock: BootClock, selfStopAtMs: number, sentAtMs: number) {
    this.#clock = clock;
    this.#selfStopAtMs = selfStopAtMs;
    this.#sentAtMs = sentAtMs;
  }

  /** Takes a renewal; one that was sent in the future or after the lease was lost changes nothing. */
  renew(sentAtMs: number): void {
    if (this.#lost || sentAtMs > this.#clock()) return;
    this.#sentAtMs = Math.max(this.#sentAtMs, sentAtMs);
  }

  /** Ends the right to act before its time; no renewal gives it back. */
  end(): void {
    this.#lost = true;
  }

  /** Whether the attempt may still act. Once it may not, it never may again. */
  isValid(): boolean {
    if (!this.#lost && this.leftMs() <= 0) this.#lost = true;
    return !this.#lost;
  }

  /** Time until the attempt stops itself, in `ms`. */
  leftMs(): number {
    return this.#sentAtMs + this.#selfStopAtMs - this.#clock();
  }
}
