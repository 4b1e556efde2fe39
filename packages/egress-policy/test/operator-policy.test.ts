import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decideReach,
  formatAllowRule,
  intersectRules,
  type OperatorPolicy,
  POLICY_PARTS,
  POLICY_PRESETS,
  type PolicyDocument,
  PRESET_REACH,
  parseOperatorPolicy,
  type ReachRequest,
  reachOf,
  registriesOf,
} from '../src/index.ts';

function policyOf(document: PolicyDocument, registries = {}): OperatorPolicy {
  const parsed = parseOperatorPolicy(document, registries);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.policy;
}

const request = (asked: Partial<ReachRequest['asked']> = {}, backend = 'command'): ReachRequest => ({
  backend,
  backendHosts: [],
  asked: { setup: [], run: [], ...asked },
});

const texts = (policy: OperatorPolicy, wanted: ReachRequest, part: 'setup' | 'run') =>
  reachOf(policy, wanted, part).rules.map(formatAllowRule);

const NAMED: PolicyDocument = {
  preset: 'named',
  rules: { packages: { parts: ['setup'], allow: ['registry.example.org'] }, docs: { allow: ['.docs.example'] } },
  backends: { command: { run: ['api.example.com'] } },
  missions: { run: ['rule:docs'] },
};

describe('the presets', () => {
  it('are these, from closed to open', () => {
    expect(POLICY_PRESETS).toEqual(['locked', 'named', 'install', 'open']);
    expect(PRESET_REACH).toEqual({
      locked: { setup: 'nothing', run: 'nothing' },
      named: { setup: 'named', run: 'named' },
      install: { setup: 'anything', run: 'named' },
      open: { setup: 'anything', run: 'anything' },
    });
  });

  it.each([
    ['locked', [], []],
    ['named', ['registry.example.org'], ['api.example.com', '.docs.example']],
    ['install', ['registry.example.org', 'else.example'], ['api.example.com', '.docs.example']],
    ['open', ['registry.example.org', 'else.example'], ['api.example.com', '.docs.example', 'else.example']],
  ] as const)('%s gives a mission that asks for more: %j for the set-up and %j for the run', (preset, setup, run) => {
    const policy = policyOf({ ...NAMED, preset });
    const wanted = request({ setup: ['rule:packages', 'else.example'], run: ['else.example'] });
    expect(texts(policy, wanted, 'setup')).toEqual(setup);
    expect(texts(policy, wanted, 'run')).toEqual(run);
  });
});

describe('an operator policy', () => {
  it('gives a backend its own hosts alone, and an unknown one those of every mission', () => {
    const policy = policyOf({ ...NAMED, backends: { one: { run: ['one.example'] }, two: { run: ['two.example'] } } });
    expect(texts(policy, request({}, 'one'), 'run')).toEqual(['one.example', '.docs.example']);
    expect(texts(policy, request({}, 'three'), 'run')).toEqual(['.docs.example']);
  });

  it('gives the hosts of the manifest to the agent and not to the set-up, below the ceiling', () => {
    const wanted = { ...request(), backendHosts: ['model.example'] };
    const open = policyOf({ preset: 'open' });
    expect([texts(open, wanted, 'setup'), texts(open, wanted, 'run')]).toEqual([[], ['model.example']]);
    expect(texts(policyOf({ preset: 'open', ceiling: { run: ['other.example'] } }), wanted, 'run')).toEqual([]);
  });

  it('has a named rule for its parts alone, and says why an entry adds nothing', () => {
    const reach = reachOf(policyOf(NAMED), request({ run: ['rule:packages', 'rule:absent', 'https://x.example'] }), 'run');
    expect(reach.unusable.map(({ entry, reason }) => [entry, reason])).toEqual([
      ['rule:packages', 'rule_not_for_part'],
      ['rule:absent', 'rule_unknown'],
      ['https://x.example', 'bad_entry'],
    ]);
    expect(reach.rules.map(formatAllowRule)).toEqual(['api.example.com', '.docs.example']);
  });

  it('takes a registry word for the host that was found for it', () => {
    const document: PolicyDocument = { preset: 'named', missions: { setup: ['registry:npm', 'registry:npm'] } };
    expect(registriesOf(document)).toEqual(['npm']);
    expect(texts(policyOf(document, { npm: ['mirror.example:4873/tcp', 'files.example'] }), request(), 'setup')).toEqual([
      'mirror.example:4873/tcp',
      'files.example',
    ]);
  });

  it('names every fault with its place', () => {
    const parsed = parseOperatorPolicy({
      preset: 'named',
      ceiling: { run: ['*.example.com'] },
      addressRules: [{ host: 'git.example', addresses: ['10.0.0.1/8'] }],
      rules: { a: { allow: ['rule:b'] }, b: { allow: ['10.0.0.1'] } },
      backends: { command: { setup: ['ok.example', 'rule:c'] } },
      missions: { run: [{ host: 'x.example', protocol: 'tcp' }, 'registry:cargo', 'registry:constructor'] },
    });
    expect(parsed.ok ? [] : parsed.problems.map(({ path }) => path)).toEqual([
      'rules.a.allow[0]',
      'rules.b.allow[0]',
      'missions.run[0]',
      'missions.run[1]',
      'missions.run[2]',
      'backends.command.setup[1]',
      'ceiling.run[0]',
      'addressRules[0]',
    ]);
  });

  it('never passes its ceiling, whatever the preset and whoever asks', () => {
    const host = fc.constantFrom('a.example', '.a.example', 'b.a.example', 'c.example', 'c.example:8080/tcp', '.c.example', 'd.example');
    const list = fc.array(host, { maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom(...POLICY_PRESETS), list, list, list, list, list, (preset, ceiling, rule, backend, missions, asked) => {
        const bound = { setup: ceiling, run: ceiling };
        const policy = policyOf({
          preset,
          ceiling: bound,
          rules: { r: { allow: rule } },
          backends: { command: { setup: backend, run: backend } },
          missions: { setup: missions, run: missions },
        });
        const parsed = policyOf({ preset: 'open', ceiling: bound }).ceiling.run;
        if (parsed === 'no_ceiling') throw new Error('the ceiling is gone');
        const wanted = { ...request({ setup: [...asked, 'rule:r'], run: [...asked, 'rule:r'] }), backendHosts: backend };
        for (const part of POLICY_PARTS) {
          const { rules } = reachOf(policy, wanted, part);
          expect(intersectRules(rules, parsed).map(formatAllowRule).sort()).toEqual(rules.map(formatAllowRule).sort());
        }
      }),
    );
  });
});

describe('a question about one target', () => {
  const policy = policyOf({ ...NAMED, ceiling: { run: ['api.example.com', '.docs.example'] } });
  const asked = request({ run: ['api.example.com', 'evil.example'] });
  it.each([
    ['api.example.com', 443, 'run', { verdict: 'allowed', reason: 'listed', rule: 'api.example.com', origin: 'backend command' }],
    ['a.DOCS.example.', 443, 'run', { verdict: 'allowed', host: 'a.docs.example', rule: '.docs.example', origin: 'rule:docs' }],
    ['evil.example', 443, 'run', { verdict: 'denied', reason: 'above_ceiling', remedy: { by: 'operator', entry: 'evil.example' } }],
    ['other.example', 443, 'run', { verdict: 'denied', reason: 'not_listed', remedy: { by: 'both', entry: 'other.example' } }],
    [
      'api.example.com',
      8443,
      'run',
      { verdict: 'denied', reason: 'port_not_listed', remedy: { by: 'both', entry: 'api.example.com:8443' } },
    ],
    ['registry.example.org', 443, 'setup', { verdict: 'denied', reason: 'empty_list', remedy: { by: 'mission', entry: 'rule:packages' } }],
    ['127.0.0.1', 443, 'run', { verdict: 'denied', reason: 'ip_literal' }],
    ['a b', 443, 'run', { verdict: 'malformed', reason: 'bad_character' }],
  ] as const)('%s:%s in %s is %j', (host, port, part, expected) => {
    expect(decideReach({ policy, request: asked, part, host, port })).toMatchObject(expected);
  });

  it('offers no remedy for what no rule can allow', () => {
    expect(decideReach({ policy, request: asked, part: 'run', host: '10.0.0.1' })).not.toHaveProperty('remedy');
  });
});
