import { builtinBackends } from '@firecrew/backend';
import { type OperatorPolicy, type PolicyDocument, parseOperatorPolicy } from '@firecrew/egress-policy';
import { policyOfCeiling } from '@firecrew/policy-file';
import { describe, expect, it } from 'vitest';
import { checkAsked, noEgress, turnEgress } from '../../src/policy/turn-egress.ts';

function policyOf(document: PolicyDocument): OperatorPolicy {
  const parsed = parseOperatorPolicy(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.policy;
}

const scopeOf = (policy: OperatorPolicy) => ({ policy, backends: builtinBackends });

const mission = (over: { allow?: string[]; setupAllow?: string[]; addressRules?: { host: string; addresses: string[] }[] } = {}) => ({
  agent: { backend: 'command', command: 'true', files: [] },
  egress: { allow: [], setupAllow: [], addressRules: [], ...over },
});

describe('what a node is told of a turn', () => {
  it('is what the mission asks for, where the operator set no bound', () => {
    expect(turnEgress(scopeOf(policyOfCeiling(null).policy), mission({ allow: ['a.example'], setupAllow: ['s.example'] }))).toEqual({
      revision: expect.stringMatching(/^[0-9a-f]{64}$/),
      allow: ['a.example'],
      ceiling: null,
      addressRules: [],
      setupAllow: ['s.example'],
    });
  });

  it('is cut to the ceiling, and bound by what is left', () => {
    const asked = mission({ allow: ['a.example', 'other.example'], setupAllow: ['s.example', 'a.example'] });
    expect(turnEgress(scopeOf(policyOfCeiling(['a.example']).policy), asked)).toMatchObject({
      allow: ['a.example'],
      ceiling: ['a.example'],
      addressRules: [],
      setupAllow: ['a.example'],
    });
    expect(turnEgress(scopeOf(policyOfCeiling([]).policy), asked)).toMatchObject({ allow: [], ceiling: [], setupAllow: [] });
  });

  it('has the hosts and address rules of the policy, and named rules as their hosts', () => {
    const policy = policyOf({
      preset: 'named',
      addressRules: [{ host: 'git.example', addresses: ['10.0.0.7'] }],
      rules: { packages: { parts: ['setup'], allow: ['registry.example'] } },
      missions: { run: ['git.example:22/tcp'] },
    });
    expect(turnEgress(scopeOf(policy), mission({ setupAllow: ['rule:packages'] }))).toMatchObject({
      allow: ['git.example:22/tcp'],
      ceiling: ['git.example:22/tcp', 'registry.example'],
      addressRules: [{ host: 'git.example', addresses: ['10.0.0.7'] }],
      setupAllow: ['registry.example'],
    });
  });

  it('has the budgets of the policy, and says nothing of them where there are none', () => {
    const budgets = { turn: { bytes: 1_000 }, hosts: [{ host: '.a.example', connections: 2 }] };
    expect(turnEgress(scopeOf(policyOf({ preset: 'open', budgets })), mission()).budgets).toEqual(budgets);
    expect(turnEgress(scopeOf(policyOf({ preset: 'open' })), mission())).not.toHaveProperty('budgets');
  });

  it('is refused where it would not fit', () => {
    const many = Array.from({ length: 200 }, (_, at) => `h${at}.example`);
    const asked = mission({ allow: many, setupAllow: many.map((host) => `s-${host}`) });
    expect(() => turnEgress(scopeOf(policyOfCeiling(null).policy), asked)).toThrowError(
      expect.objectContaining({ code: 'policy_too_large' }),
    );
  });
});

describe('the revision of what a node is told', () => {
  it('is the same for what says the same, and another for anything else', () => {
    const of = (ceiling: string[] | null, allow: string[]) =>
      turnEgress(scopeOf(policyOfCeiling(ceiling).policy), mission({ allow })).revision;
    expect(of(['a.example', 'unrelated.example'], ['a.example'])).toBe(of(['a.example'], ['a.example']));
    const bounded = turnEgress(
      scopeOf(policyOf({ preset: 'open', budgets: { turn: { bytes: 1 } } })),
      mission({ allow: ['a.example'] }),
    ).revision;
    expect(bounded).not.toBe(of(null, ['a.example']));
    expect(new Set([of(null, ['a.example']), of(['a.example'], ['a.example']), of([], ['a.example']), noEgress().revision]).size).toBe(3);
  });
});

describe('a mission that asks for what means nothing', () => {
  it.each([
    ['an address', { allow: ['10.0.0.1'] }, 'allow_list_invalid'],
    ['a rule that is not there', { allow: ['rule:absent'] }, 'policy_rule_unknown'],
    ['a rule that is for the other part', { allow: ['rule:packages'] }, 'policy_rule_unknown'],
  ])('is refused with %s', (_what, egress, code) => {
    const policy = policyOf({ preset: 'open', rules: { packages: { parts: ['setup'], allow: [] } } });
    expect(() => checkAsked(scopeOf(policy), mission(egress))).toThrowError(expect.objectContaining({ code }));
  });
});
