import { describe, expect, it } from 'vitest';
import { decideRefusal, LOGIN_REFUSED_MAX, LOGIN_REFUSED_PAUSE_MS } from '../../src/index.ts';

describe('a credential of a login that a provider refused', () => {
  it.each([
    [
      { isPresent: false, isKnown: false, sinceRunMs: 1e9 },
      { verdict: 'ignored', reason: 'replaced' },
    ],
    [
      { isPresent: false, isKnown: true, sinceRunMs: 1e9 },
      { verdict: 'ignored', reason: 'replaced' },
    ],
    [
      { isPresent: true, isKnown: true, sinceRunMs: 1e9 },
      { verdict: 'ignored', reason: 'known' },
    ],
    [
      { isPresent: true, isKnown: false, sinceRunMs: 1e9 },
      { verdict: 'run', delayMs: 0 },
    ],
    [
      { isPresent: true, isKnown: false, sinceRunMs: 10_000 },
      { verdict: 'run', delayMs: 0 },
    ],
    [
      { isPresent: true, isKnown: false, sinceRunMs: 9_000 },
      { verdict: 'run', delayMs: 1_000 },
    ],
    [
      { isPresent: true, isKnown: false, sinceRunMs: 0 },
      { verdict: 'run', delayMs: 10_000 },
    ],
  ] as const)('%j is %j', (known, decision) => expect(decideRefusal(known)).toEqual(decision));

  it('has bounds', () => expect([LOGIN_REFUSED_PAUSE_MS, LOGIN_REFUSED_MAX]).toEqual([10_000, 64]));
});
