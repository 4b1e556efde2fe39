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
      'nothing was refused that a policy could allow',
      'not learned: b.example:443 (ask for rule:docs)',
      'not learned: (no name) (ip_literal)',
      'not learned: d.example:443 (private_address)',
      expect.stringContaining('more refusals'),
    ]);
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
