import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decideReach,
  formatAllowRule,
  intersectRules,
  loadAllowList,
  type OperatorPolicy,
  POLICY_PARTS,
  POLICY_PRESETS,
  type PolicyDocument,
  parseOperatorPolicy,
  type ReachRequest,
  reachOf,
} from '../src/index.ts';

function policyOf(document: PolicyDocument): OperatorPolicy {
  const parsed = parseOperatorPolicy(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.policy;
}
const request = (run: readonly string[], learning: boolean): ReachRequest => ({
  backend: 'command',
  backendHosts: [],
  asked: { setup: run, run },
  learning,
});
const texts = (policy: OperatorPolicy, wanted: ReachRequest, part: 'setup' | 'run') =>
  reachOf(policy, wanted, part).rules.map(formatAllowRule).sort();

const TRY = { setup: ['.packages.example'], run: ['.try.example'] };

describe('what is open to a learning run', () => {
  it.each([
    ['what the ceiling of an open policy holds', { preset: 'open', ceiling: { setup: [], run: ['.a.example'] } }, [], ['.a.example']],
    ['what the policy names, under the preset named', { preset: 'named', missions: { run: ['a.example'] } }, [], ['a.example']],
    ['what the operator names for it, under any preset but locked', { preset: 'named', learn: TRY }, TRY.setup, TRY.run],
    ['the same, where nothing else bounds it', { preset: 'open', learn: TRY }, TRY.setup, TRY.run],
    [
      'what of that is below the ceiling',
      { preset: 'open', ceiling: { run: ['b.try.example'] }, learn: TRY },
      TRY.setup,
      ['b.try.example'],
    ],
    ['nothing, under the preset locked', { preset: 'locked', learn: TRY }, [], []],
  ] as [string, PolicyDocument, string[], string[]][])('is %s', (_what, document, setup, run) => {
    const policy = policyOf(document);
    expect([texts(policy, request([], true), 'setup'), texts(policy, request([], true), 'run')]).toEqual([setup, run]);
  });

  it('is nothing to an ordinary run', () => {
    expect(texts(policyOf({ preset: 'named', learn: TRY }), request(['a.try.example'], false), 'run')).toEqual([]);
  });

  it('has to be named by the operator where nothing bounds a part, and is that of an ordinary run until then', () => {
    const policy = policyOf({ preset: 'install' });
    expect(policy.learn).toEqual({ setup: 'not_allowed', run: [] });
    expect(texts(policy, request(['a.example'], true), 'setup')).toEqual(['a.example']);
    expect(policyOf({ preset: 'install', learn: { setup: [] } }).learn).toEqual({ setup: [], run: [] });
  });

  it('is said to be so when it is asked about', () => {
    const policy = policyOf({ preset: 'named', learn: TRY });
    const ask = (learning: boolean) => decideReach({ policy, request: request([], learning), part: 'run', host: 'x.try.example' });
    expect(ask(true)).toMatchObject({ verdict: 'allowed', rule: '.try.example', origin: 'learn' });
    expect(ask(false)).toMatchObject({ verdict: 'denied', remedy: { by: 'both', entry: 'x.try.example' } });
  });

  it('is refused with its place where an entry means nothing', () => {
    const parsed = parseOperatorPolicy({ preset: 'named', learn: { setup: ['.com'], run: ['10.0.0.1', 'rule:absent'] } });
    expect(parsed.ok ? [] : parsed.problems.map(({ path }) => path)).toEqual(['learn.setup[0]', 'learn.run[0]', 'learn.run[1]']);
  });

  it('never passes the ceiling that the operator wrote, and takes nothing from an ordinary run', () => {
    const host = fc.constantFrom('a.example', '.a.example', 'b.a.example', 'c.example', 'c.example:8080/tcp', '.c.example', 'd.example');
    const list = fc.array(host, { maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom(...POLICY_PRESETS), list, list, list, list, (preset, ceiling, learn, missions, asked) => {
        const policy = policyOf({
          preset,
          ceiling: { setup: ceiling, run: ceiling },
          learn: { setup: learn, run: learn },
          missions: { setup: missions, run: missions },
        });
        for (const part of POLICY_PARTS) {
          const { rules } = reachOf(policy, request(asked, true), part);
          expect(intersectRules(rules, loadAllowList(ceiling)).map(formatAllowRule).sort()).toEqual(rules.map(formatAllowRule).sort());
          const ordinary = reachOf(policy, request(asked, false), part).rules;
          expect(intersectRules(ordinary, rules).map(formatAllowRule)).toEqual(expect.arrayContaining(ordinary.map(formatAllowRule)));
        }
      }),
    );
  });
});
