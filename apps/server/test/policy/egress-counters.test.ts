import type { EgressLine, TurnEvent } from '@firecrew/protocol';
import { describe, expect, it } from 'vitest';
import { EgressCounters, MAX_SERIES } from '../../src/policy/egress-counters.ts';

const AT = '2030-01-01T00:00:00.000Z';

function event(line: Partial<EgressLine>): TurnEvent {
  const nothing = { bytesIn: null, bytesOut: null, lookupMs: null, connectMs: null, durationMs: null, address: null, rule: null };
  const plain = { event: 'refused', connection: 1, purpose: 'agent', host: 'a.example', port: 443 } as const;
  return { seq: 1, at: AT, body: { kind: 'egress', line: { ...plain, ...nothing, verdict: 'denied', reason: 'not_listed', ...line } } };
}

const series = (counters: EgressCounters) => counters.lines().filter((line) => !line.startsWith('#'));

describe('the counters of egress', () => {
  it('count each connection once, by verdict and reason, and the bytes of its tunnel', () => {
    const counters = new EgressCounters();
    counters.count([
      event({}),
      event({}),
      event({ event: 'open', verdict: 'allowed', reason: 'listed' }),
      event({ event: 'end', verdict: 'allowed', reason: 'guest_closed', bytesIn: 7, bytesOut: 5 }),
      { seq: 2, at: AT, body: { kind: 'notice', level: 'info', code: 'x', message: 'x' } },
    ]);
    expect(series(counters)).toEqual([
      'firecrew_egress_connections_total{verdict="allowed",reason="guest_closed"} 1',
      'firecrew_egress_connections_total{verdict="denied",reason="not_listed"} 2',
      'firecrew_egress_bytes_total{direction="in"} 7',
      'firecrew_egress_bytes_total{direction="out"} 5',
    ]);
  });

  it('have a bounded number of series, whose labels no node can break out of', () => {
    const counters = new EgressCounters();
    counters.count([event({ verdict: 'x"} 1\nfake{a="', reason: 'A'.repeat(100) })]);
    counters.count(Array.from({ length: MAX_SERIES + 50 }, (_, at) => event({ reason: `reason_${at}` })));
    const found = series(counters).filter((line) => line.startsWith('firecrew_egress_connections_total'));
    expect(found.length).toBeLessThanOrEqual(MAX_SERIES + 1);
    expect(found.every((line) => /^firecrew_egress_connections_total\{verdict="[a-z_]+",reason="[a-z0-9_]+"\} \d+$/.test(line))).toBe(true);
    const total = found.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    expect(total).toBe(MAX_SERIES + 51);
  });
});
