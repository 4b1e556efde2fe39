import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judgeClock } from '../../src/clock/judge-clock.ts';

describe('the clock of a guest', () => {
  it.each([
    ['as its host', { askedMs: 1000, guestMs: 1050, answeredMs: 1100 }, { verdict: 'near' }],
    ['2 s behind', { askedMs: 10_000, guestMs: 8000, answeredMs: 10_000 }, { verdict: 'near' }],
    ['a millisecond more than 2 s behind', { askedMs: 10_000, guestMs: 7999, answeredMs: 10_000 }, { verdict: 'step', addMs: 2001 }],
    ['more than 2 s ahead', { askedMs: 10_000, guestMs: 12_001, answeredMs: 10_000 }, { verdict: 'step', addMs: -2001 }],
    ['off by less than the trip allows for', { askedMs: 10_000, guestMs: 17_000, answeredMs: 18_000 }, { verdict: 'near' }],
    [
      'years behind',
      { askedMs: 1_700_000_000_000, guestMs: 0, answeredMs: 1_700_000_000_200 },
      { verdict: 'step', addMs: 1_700_000_000_100 },
    ],
    ['of a host that slept in between', { askedMs: 10_000, guestMs: 10_000, answeredMs: 20_001 }, { verdict: 'unsure' }],
    ['of a host whose clock was set back in between', { askedMs: 10_000, guestMs: 0, answeredMs: 9999 }, { verdict: 'unsure' }],
  ])('%s', (_name, look, verdict) => {
    expect(judgeClock(look)).toEqual(verdict);
  });

  it('is never made worse: after a step it is nearer than half the trip, whenever in the trip it was read', () => {
    const look = fc.record({
      offMs: fc.integer({ min: -1e12, max: 1e12 }),
      tripMs: fc.integer({ min: 0, max: 10_000 }),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(look, ({ offMs, tripMs, part }) => {
        const askedMs = 2e12;
        const guestMs = Math.round(askedMs + part * tripMs + offMs);
        const judged = judgeClock({ askedMs, guestMs, answeredMs: askedMs + tripMs });
        if (judged.verdict === 'step') expect(Math.abs(offMs + judged.addMs)).toBeLessThanOrEqual(tripMs / 2 + 1);
        else expect(Math.abs(offMs)).toBeLessThanOrEqual(2000 + tripMs + 1);
      }),
    );
  });
});
