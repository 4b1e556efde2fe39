import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LOGIN_PAUSE_MIN_MS, LOGIN_REFRESH_AT, LOGIN_RETRY_MAX_MS, readLoginAnswer, refreshDelay } from '../../src/index.ts';

const TOKEN = 'ya29.0123456789';

describe('the answer of a login', () => {
  it.each([
    [`${TOKEN}\n`, { credential: TOKEN, expiresAtMs: null }],
    [`{"credential":"${TOKEN}"}`, { credential: TOKEN, expiresAtMs: null }],
    [`{"credential":"${TOKEN}","expiresAt":null,"more":[1]}`, { credential: TOKEN, expiresAtMs: null }],
    [`{"credential":"${TOKEN}","expiresAt":"2030-01-01T00:00:00Z"}\n`, { credential: TOKEN, expiresAtMs: 1_893_456_000_000 }],
    [`{"credential":"${TOKEN}","expiresAt":"2030-01-01T01:00:00.000+01:00"}`, { credential: TOKEN, expiresAtMs: 1_893_456_000_000 }],
    [`{"credential":"${TOKEN}","expiresAt":1893456000}`, { credential: TOKEN, expiresAtMs: 1_893_456_000_000 }],
  ])('%j is a credential', (text, answer) => expect(readLoginAnswer(text)).toEqual(answer));

  it.each([
    '',
    'short',
    `${TOKEN}\n${TOKEN}`,
    `${TOKEN} more`,
    '{',
    'null',
    '{}',
    `{"credential":7}`,
    `{"credential":"a b"}`,
    `["${TOKEN}"]`,
    `{"credential":"${TOKEN}","expiresAt":"tomorrow"}`,
    `{"credential":"${TOKEN}","expiresAt":"2030-01-01"}`,
    `{"credential":"${TOKEN}","expiresAt":true}`,
    `{"credential":"${TOKEN}","expiresAt":"2030-13-41T99:00:00Z"}`,
  ])('%j is none', (text) => expect(readLoginAnswer(text)).toBeUndefined());
});

describe('the next run of a login', () => {
  it.each([
    [{ kind: 'obtained', lifetimeMs: null, everyMs: 300_000 }, 300_000],
    [{ kind: 'obtained', lifetimeMs: 3_600_000, everyMs: 300_000 }, 300_000],
    [{ kind: 'obtained', lifetimeMs: 60_000, everyMs: 300_000 }, 45_000],
    [{ kind: 'obtained', lifetimeMs: 0, everyMs: 300_000 }, 1_000],
    [{ kind: 'obtained', lifetimeMs: -5_000, everyMs: 300_000 }, 1_000],
    [{ kind: 'failed', failures: 1 }, 1_000],
    [{ kind: 'failed', failures: 3 }, 4_000],
    [{ kind: 'failed', failures: 1_000 }, 60_000],
  ] as const)('after %j is in %i ms', (state, ms) => expect(refreshDelay(state)).toBe(ms));

  it('comes before a credential ends, never at once, and never later than said', () => {
    const everyMs = fc.integer({ min: 10_000, max: 86_400_000 });
    fc.assert(
      fc.property(everyMs, fc.option(fc.integer({ min: -1_000_000, max: 1_000_000_000 })), (every, lifetimeMs) => {
        const delay = refreshDelay({ kind: 'obtained', lifetimeMs, everyMs: every });
        expect(delay).toBeGreaterThanOrEqual(LOGIN_PAUSE_MIN_MS);
        expect(delay).toBeLessThanOrEqual(every);
        if (lifetimeMs !== null && lifetimeMs > LOGIN_PAUSE_MIN_MS / LOGIN_REFRESH_AT) expect(delay).toBeLessThan(lifetimeMs);
      }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000_000 }), (failures) => {
        const delay = refreshDelay({ kind: 'failed', failures });
        expect(delay).toBeGreaterThanOrEqual(LOGIN_PAUSE_MIN_MS);
        expect(delay).toBeLessThanOrEqual(LOGIN_RETRY_MAX_MS);
      }),
    );
  });
});
