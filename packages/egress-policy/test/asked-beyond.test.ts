import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  askedBeyond,
  decideReach,
  type OperatorPolicy,
  POLICY_PRESETS,
  type PolicyDocument,
  parseOperatorPolicy,
  type ReachRequest,
} from '../src/index.ts';

function policyOf(document: PolicyDocument): OperatorPolicy {
  const parsed = parseOperatorPolicy(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.policy;
}

const request = (asked: Partial<ReachRequest['asked']>, backendHosts: string[] = []): ReachRequest => ({
  backend: 'command',
  backendHosts,
  asked: { setup: [], run: [], ...asked },
});

describe('what is asked above the ceiling', () => {
  it.each([
    ['the ceiling', { preset: 'open', ceiling: { run: ['a.example'] } }, ['b.example'], [['b.example', [], 'ceiling']]],
    ['the preset', { preset: 'named', missions: { run: ['a.example'] } }, ['b.example'], [['b.example', [], 'preset']]],
    ['a preset that lets nothing through', { preset: 'locked' }, ['b.example'], [['b.example', [], 'preset']]],
    [
      'both, which is the ceiling: naming it would not do',
      { preset: 'named', ceiling: { run: ['a.example'] } },
      ['b.example'],
      [['b.example', [], 'ceiling']],
    ],
    ['the port', { preset: 'open', ceiling: { run: ['a.example'] } }, ['a.example:8443'], [['a.example:8443', [], 'ceiling']]],
    [
      'the protocol, in part',
      { preset: 'open', ceiling: { run: ['a.example:22'] } },
      ['a.example:22/tcp'],
      [['a.example:22/tcp', ['a.example:22'], 'ceiling']],
    ],
    [
      'a domain, in part',
      { preset: 'open', ceiling: { run: ['x.a.example', 'b.a.example'] } },
      ['.a.example'],
      [['.a.example', ['b.a.example', 'x.a.example'], 'ceiling']],
    ],
    ['nothing', { preset: 'open', ceiling: { run: ['.a.example'] } }, ['x.a.example', 'a.example'], []],
    ['nothing, where there is no bound', { preset: 'open' }, ['anything.example'], []],
  ] as [string, PolicyDocument, string[], [string, string[], string][]][])(
    'is told with what stands in the way: %s',
    (_what, document, run, told) => {
      const beyond = askedBeyond(policyOf(document), request({ run }));
      expect(beyond.map(({ entry, leaves, bound }) => [entry, leaves, bound])).toEqual(told);
    },
  );

  it('is told apart for set-up and run, with who asked, each entry once', () => {
    const policy = policyOf({
      preset: 'open',
      ceiling: { setup: ['s.example'], run: [] },
      rules: { docs: { allow: ['docs.example'] } },
      missions: { run: ['own.example'] },
    });
    const asked = request({ setup: ['s.example', 'b.example'], run: ['b.example', 'b.example', 'rule:docs'] }, ['model.example']);
    expect(askedBeyond(policy, asked).map(({ part, origin, entry }) => [part, origin, entry])).toEqual([
      ['setup', 'mission', 'b.example'],
      ['run', 'backend command', 'model.example'],
      ['run', 'mission', 'b.example'],
      ['run', 'rule:docs', 'docs.example'],
    ]);
  });

  it('is just what is not reached, whatever the policy', () => {
    const names = ['a.example', 'b.example', 'x.a.example'];
    const list = fc.array(fc.constantFrom(...names, '.a.example', 'a.example:22/tcp'), { maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom(...POLICY_PRESETS), list, list, fc.constantFrom(...names), (preset, ceiling, named, host) => {
        const policy = policyOf({ preset, ceiling: { run: ceiling }, missions: { run: named } });
        const asked = request({ run: [host] });
        const reached = decideReach({ policy, request: asked, part: 'run', host }).verdict === 'allowed';
        expect(askedBeyond(policy, asked).length === 0).toBe(reached);
      }),
    );
  });
});
