import type { PolicyExplanation } from '@firecrew/protocol';
import { describe, expect, it } from 'vitest';
import { learnable, notesOf } from '../src/commands/policy-learn.ts';

type Refused = PolicyExplanation['refused'][number];
const row = (host: string | null, more: Partial<Refused> = {}): Refused => ({
  purpose: 'agent',
  host,
  port: host === null ? null : 443,
  reason: 'not_listed',
  rule: null,
  connections: 1,
  remedy: host === null ? null : { by: 'both', entry: host },
  allowedNow: false,
  ...more,
});

describe('what is learned of refusals', () => {
  it('is an entry for each host that a policy could allow, by part', () => {
    const { entries, left } = learnable({
      reached: [],
      refused: [
        row('a.example'),
        row('b.example', { purpose: 'setup' }),
        row('c.example', { purpose: 'check', remedy: { by: 'operator', entry: 'c.example:8443' } }),
      ],
    });
    expect(entries).toEqual([
      { part: 'run', entry: 'a.example' },
      { part: 'setup', entry: 'b.example' },
      { part: 'run', entry: 'c.example:8443' },
    ]);
    expect(left).toEqual([]);
  });

  it('leaves out what is allowed by now, what a rule has already, and what no name could allow, and says why', () => {
    const { entries, left } = learnable({
      reached: [],
      refused: [
        row('a.example', { allowedNow: true }),
        row('b.example', { remedy: { by: 'mission', entry: 'rule:docs' } }),
        row(null, { reason: 'ip_literal' }),
        row('d.example', { reason: 'private_address', remedy: null }),
      ],
    });
    expect(entries).toEqual([]);
    const learned = { before: '', text: '', rules: [] };
    expect(notesOf(learned, left, true)).toEqual([
      'nothing was refused, or reached beyond the policy, that a policy could allow',
      'not learned: b.example:443 (ask for rule:docs)',
      'not learned: (no name) (ip_literal)',
      'not learned: d.example:443 (private_address)',
      expect.stringContaining('more refusals'),
    ]);
  });

  it('is what a learning run reached beyond the policy, too: exact hosts with port and protocol, and not the rule that let them through', () => {
    const reached = (host: string, port: number, more: Partial<PolicyExplanation['reached'][number]> = {}) => ({
      purpose: 'agent' as const,
      host,
      port,
      rule: '.example',
      connections: 1,
      bytesIn: 1,
      bytesOut: 1,
      remedy: { by: 'both' as const, entry: port === 443 ? host : `${host}:${port}` },
      allowedNow: false,
      ...more,
    });
    const { remedy: _remedy, allowedNow: _allowed, ...ofOlder } = reached('older.example', 443);
    const { entries, left } = learnable({
      reached: [
        reached('a.example', 443),
        reached('raw.example', 22, { rule: 'raw.example:22/tcp', remedy: { by: 'operator', entry: 'raw.example:22/tcp' } }),
        reached('s.example', 8443, { purpose: 'setup' }),
        reached('own.example', 443, { allowedNow: true, remedy: null }),
        reached('docs.example', 443, { remedy: { by: 'mission', entry: 'rule:docs' } }),
        ofOlder,
      ],
      refused: [row('b.example')],
    });
    expect(entries).toEqual([
      { part: 'run', entry: 'a.example' },
      { part: 'run', entry: 'raw.example:22/tcp' },
      { part: 'setup', entry: 's.example:8443' },
      { part: 'run', entry: 'b.example' },
    ]);
    expect(left).toEqual([{ host: 'docs.example', port: 443, reason: 'ask for rule:docs' }]);
  });

  it('says by which words missions get it', () => {
    const rules = [
      { name: 'learned-setup', part: 'setup', entries: ['b'] },
      { name: 'learned', part: 'run', entries: ['a'] },
    ] as const;
    expect(notesOf({ before: '', text: '', rules }, [], false)).toEqual([
      expect.stringContaining('--setup-allow rule:learned-setup --allow rule:learned.'),
    ]);
  });
});
