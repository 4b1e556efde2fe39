import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Lease } from '../../src/shim/lease.ts';

describe('a lease', () => {
  it('is valid until its share of the term is over, counted from when the renewal was sent', () => {
    let now = 1_000;
    const lease = new Lease(() => now, 800, 1_000);
    now = 1_799;
    expect(lease.isValid()).toBe(true);
    lease.renew(1_500);
    now = 2_299;
    expect(lease.isValid()).toBe(true);
    now = 2_300;
    expect(lease.isValid()).toBe(false);
  });

  it('that was lost stays lost: a late renewal does not bring it back', () => {
    let now = 0;
    const lease = new Lease(() => now, 10, 0);
    now = 10;
    expect(lease.isValid()).toBe(false);
    lease.renew(10);
    expect(lease.isValid()).toBe(false);
  });

  it('that is ended before its time stays ended', () => {
    const lease = new Lease(() => 5, 1_000, 0);
    expect(lease.isValid()).toBe(true);
    lease.end();
    lease.renew(5);
    expect(lease.isValid()).toBe(false);
  });

  it('believes no renewal from the future', () => {
    let now = 0;
    const lease = new Lease(() => now, 10, 0);
    lease.renew(1_000_000);
    now = 10;
    expect(lease.isValid()).toBe(false);
  });

  it('is never valid longer than the share after the newest renewal that had been sent', () => {
    const step = fc.record({ passMs: fc.nat(50), sentAgoMs: fc.integer({ min: -20, max: 60 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        let now = 0;
        let newest = 0;
        const lease = new Lease(() => now, 40, 0);
        for (const { passMs, sentAgoMs } of steps) {
          now += passMs;
          const valid = lease.isValid();
          if (now - newest >= 40) expect(valid).toBe(false);
          const sent = now - sentAgoMs;
          lease.renew(sent);
          if (valid && sent <= now) newest = Math.max(newest, sent);
        }
      }),
    );
  });
});
