import { describe, expect, it } from 'vitest';
import { LATE_LOOK_MIN_MS, LATE_LOOK_SHARE, LeaseTerms } from '../../src/driver/lease-terms.ts';

const TTL_MS = 300_000;
const LOOK_MS = 1_000;
const lease = (renewals: number, key = 'a.1') => ({ key, renewals });

/** Looks at `leases` every second until `untilMs`; when the first one expired. */
function lookUntil(terms: LeaseTerms, fromMs: number, untilMs: number, leases = [lease(1)]): number | undefined {
  for (let now = fromMs; now <= untilMs; now += LOOK_MS) if (terms.look(leases, now).size > 0) return now;
  return undefined;
}

describe('the term of a lease', () => {
  it('is a full one from the first look, whatever the clock says then', () => {
    for (const start of [0, 86_400_000])
      expect(lookUntil(new LeaseTerms(TTL_MS), start, start + 2 * TTL_MS)).toBe(start + TTL_MS + LOOK_MS);
  });

  it('begins anew with each renewal', () => {
    const terms = new LeaseTerms(TTL_MS);
    expect(lookUntil(terms, 0, TTL_MS)).toBeUndefined();
    expect(lookUntil(terms, TTL_MS + LOOK_MS, 3 * TTL_MS, [lease(2)])).toBe(2 * TTL_MS + 2 * LOOK_MS);
  });

  it('does not count the time in which the server was frozen or without its database', () => {
    const terms = new LeaseTerms(TTL_MS);
    expect(lookUntil(terms, 0, 100_000)).toBeUndefined();
    const thawed = 100_000 + 10 * TTL_MS;
    expect(lookUntil(terms, thawed, thawed + TTL_MS)).toBe(thawed + 200_000 + LOOK_MS);
  });

  it('counts a look that is a little late, so that a slow server does not keep the dead alive', () => {
    const terms = new LeaseTerms(TTL_MS);
    const step = TTL_MS * LATE_LOOK_SHARE;
    const ends = [1, 2, 3, 4].map((count) => terms.look([lease(1)], count * step).size);
    expect(ends).toEqual([0, 0, 0, 1]);
  });

  it('that is shorter than the pause between two looks is over all the same', () => {
    const terms = new LeaseTerms(100);
    const ends = [0, 1, 2].map((count) => terms.look([lease(1)], count * LATE_LOOK_MIN_MS).size);
    expect(ends).toEqual([0, 1, 1]);
  });

  it('is each lease’s own, and forgotten with it', () => {
    const terms = new LeaseTerms(TTL_MS);
    const both = (renewals: number) => [lease(1), lease(renewals, 'b.1')];
    for (let now = 0; now <= TTL_MS; now += LOOK_MS) terms.look(both(now), now);
    expect([...terms.look(both(0), TTL_MS + LOOK_MS)]).toEqual(['a.1']);
    expect([...terms.look([], TTL_MS + 2 * LOOK_MS)]).toEqual([]);
    expect([...terms.look([lease(1)], TTL_MS + 3 * LOOK_MS)]).toEqual([]);
  });
});
