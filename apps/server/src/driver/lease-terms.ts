/** Share of a term after which a look is late: this server was frozen or had no database, and saw no renewal because of that. */
export const LATE_LOOK_SHARE = 0.5;
/** No look is late before this, in ms: looks at very short terms are as far apart as these. */
export const LATE_LOOK_MIN_MS = 2_000;

/** One open lease, as the database has it. */
export interface SeenLease {
  readonly key: string;
  /** Grows with each renewal. */
  readonly renewals: number;
}

/**
 * How long each open lease was seen without a renewal, by this server's own monotonic clock. A lease gets a full term from the first look
 * at its present count, and time in which this server did not look does not count: a server that starts late, or was frozen, expires
 * nothing at once.
 */
export class LeaseTerms {
  readonly #ttlMs: number;
  readonly #seen = new Map<string, { renewals: number; atMs: number }>();
  #lookedAtMs: number | undefined;

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  /** Keys of the leases whose term is over at `nowMs`. */
  look(leases: readonly SeenLease[], nowMs: number): ReadonlySet<string> {
    const missedMs = nowMs - (this.#lookedAtMs ?? nowMs);
    this.#lookedAtMs = nowMs;
    if (missedMs > Math.max(this.#ttlMs * LATE_LOOK_SHARE, LATE_LOOK_MIN_MS)) for (const seen of this.#seen.values()) seen.atMs += missedMs;
    const expired = new Set<string>();
    const present = new Set<string>();
    for (const { key, renewals } of leases) {
      present.add(key);
      const seen = this.#seen.get(key);
      if (seen === undefined || seen.renewals !== renewals) this.#seen.set(key, { renewals, atMs: nowMs });
      else if (nowMs - seen.atMs > this.#ttlMs) expired.add(key);
    }
    for (const key of this.#seen.keys()) if (!present.has(key)) this.#seen.delete(key);
    return expired;
  }
}
