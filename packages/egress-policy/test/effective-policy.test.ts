import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createPolicy, decideHost, describePolicy, EgressConfigError, effectivePolicy, loadAllowList } from '../src/index.ts';

const rules = (...entries: string[]) => loadAllowList(entries);
const verdict = (policy: ReturnType<typeof createPolicy>, host: string, port = 443) => decideHost({ policy, host, port });

describe('the effective policy', () => {
  it('is the ceiling ∩ (backend ∪ mission)', () => {
    const policy = effectivePolicy({
      ceiling: rules('.model.test', 'registry.example.test', '.example.test:22/tcp'),
      backendHosts: rules('api.model.test', 'telemetry.other.test'),
      missionHosts: rules('.example.test', 'git.example.test:22/tcp'),
    });
    expect(describePolicy(policy)).toEqual(['api.model.test', 'registry.example.test', 'git.example.test:22/tcp']);
  });

  it.each([
    ['a backend that is unknown', { ceiling: 'no_ceiling', backendHosts: undefined }, 'unknown_backend'],
    ['a ceiling that is missing', { ceiling: undefined, backendHosts: rules('a.test') }, 'no_ceiling_given'],
    ['an empty ceiling', { ceiling: [], backendHosts: rules('a.test') }, 'empty_list'],
    ['empty lists', { ceiling: 'no_ceiling', backendHosts: [] }, 'empty_list'],
  ] as const)('reaches nothing with %s', (_name, input, reason) => {
    const missionHosts = reason === 'empty_list' && input.backendHosts.length === 0 ? [] : rules('mission.test');
    const policy = effectivePolicy({ ...input, missionHosts });
    expect(verdict(policy, 'mission.test')).toMatchObject({ verdict: 'denied', reason });
    expect(verdict(policy, 'a.test')).toMatchObject({ verdict: 'denied', reason });
  });

  it('lifts the ceiling only when told so in words', () => {
    const policy = effectivePolicy({ ceiling: 'no_ceiling', backendHosts: rules('a.test'), missionHosts: rules('b.test') });
    expect(describePolicy(policy)).toEqual(['a.test', 'b.test']);
  });

  it('lets raw bytes through only where both sides do', () => {
    const wanted = rules('a.test:443/tcp');
    const under = (ceiling: string) => effectivePolicy({ ceiling: rules(ceiling), backendHosts: wanted, missionHosts: [] });
    expect(verdict(under('a.test'), 'a.test')).toMatchObject({ verdict: 'allowed', protocol: 'tls' });
    expect(verdict(under('a.test:443/tcp'), 'a.test')).toMatchObject({ verdict: 'allowed', protocol: 'tcp' });
  });

  it('allows a target exactly when the ceiling and the wanted hosts both do', () => {
    const name = fc.constantFrom('a.test', 'b.a.test', 'c.b.a.test', 'd.test', 'xa.test');
    const entry = fc
      .tuple(fc.boolean(), name, fc.constantFrom('', ':443/tcp', ':22/tcp', ':8443'))
      .map(([dot, host, suffix]) => `${dot ? '.' : ''}${host}${suffix}`);
    const list = fc.array(entry, { maxLength: 4 }).map((entries) => loadAllowList(entries));
    fc.assert(
      fc.property(list, list, list, name, fc.constantFrom(443, 22, 8443), (ceiling, backendHosts, missionHosts, host, port) => {
        const both = verdict(effectivePolicy({ ceiling, backendHosts, missionHosts }), host, port);
        const above = verdict(createPolicy({ rules: ceiling }), host, port);
        const wanted = verdict(createPolicy({ rules: [...backendHosts, ...missionHosts] }), host, port);
        expect(both.verdict === 'allowed').toBe(above.verdict === 'allowed' && wanted.verdict === 'allowed');
        if (both.verdict !== 'allowed' || above.verdict !== 'allowed' || wanted.verdict !== 'allowed') return;
        expect(both.protocol === 'tcp').toBe(above.protocol === 'tcp' && wanted.protocol === 'tcp');
      }),
      { numRuns: 2000 },
    );
  });

  it('refuses own addresses that it cannot read, zones included', () => {
    expect(() => createPolicy({ rules: [], ownAddresses: ['fe80::1%eth0'] })).toThrow(EgressConfigError);
  });
});

describe('a verdict on a host', () => {
  const policy = createPolicy({ rules: rules('api.example.test', '.pkg.example.test', 'ssh.example.test:22/tcp') });

  it.each([
    ['API.example.test.', 443, { verdict: 'allowed', host: 'api.example.test', rule: 'api.example.test', protocol: 'tls' }],
    ['pkg.example.test', 443, { verdict: 'allowed', rule: '.pkg.example.test' }],
    ['a.b.pkg.example.test', 443, { verdict: 'allowed', host: 'a.b.pkg.example.test' }],
    ['ssh.example.test', 22, { verdict: 'allowed', protocol: 'tcp' }],
    ['ssh.example.test', 443, { verdict: 'denied', reason: 'port_not_listed', rule: 'ssh.example.test:22/tcp' }],
    ['xapi.example.test', 443, { verdict: 'denied', reason: 'not_listed', host: 'xapi.example.test' }],
    ['evil.test/api.example.test', 443, { verdict: 'malformed', reason: 'bad_character' }],
    ['__proto__', 443, { verdict: 'denied', reason: 'not_listed' }],
    ['127.0.0.1', 443, { verdict: 'denied', reason: 'ip_literal' }],
    ['0x7f.1', 443, { verdict: 'denied', reason: 'numeric_host' }],
    ['a.pkg.example.0x7f', 443, { verdict: 'denied', reason: 'numeric_host' }],
    ['[::1]', 443, { verdict: 'denied', reason: 'ip_literal' }],
    ['[nonsense', 443, { verdict: 'denied', reason: 'ip_literal' }],
    ['fe80::1%eth0', 443, { verdict: 'denied', reason: 'ip_literal' }],
    ['', 443, { verdict: 'malformed', reason: 'empty_host' }],
    ['.', 443, { verdict: 'malformed', reason: 'empty_label' }],
    ['-a.pkg.example.test', 443, { verdict: 'malformed', reason: 'hyphen_at_label_edge' }],
    [`${'a'.repeat(64)}.pkg.example.test`, 443, { verdict: 'malformed', reason: 'label_too_long' }],
    [`${'a.'.repeat(119)}pkg.example.test`, 443, { verdict: 'malformed', reason: 'name_too_long' }],
  ])('of %j and port %d', (host, port, expected) => {
    expect(decideHost({ policy, host, port })).toMatchObject(expected);
  });

  it('names the rule that lets most bytes through, then the nearest', () => {
    const of = (...entries: string[]) => decideHost({ policy: createPolicy({ rules: rules(...entries) }), host: 'a.b.test', port: 443 });
    expect(of('a.b.test', '.b.test:443/tcp')).toMatchObject({ protocol: 'tcp', rule: '.b.test:443/tcp' });
    expect(of('.b.test', 'a.b.test')).toMatchObject({ protocol: 'tls', rule: 'a.b.test' });
  });

  it('holds for the normalised name what it held for the text', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc.stringMatching(/^[A-Za-z0-9._-]{0,20}$/).map((head) => `${head}.pkg.example.test`),
    );
    fc.assert(
      fc.property(text, (host) => {
        const first = decideHost({ policy, host, port: 443 });
        if (first.verdict !== 'allowed') return;
        expect(first.host).toMatch(/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/);
        expect(first.host === 'api.example.test' || `.${first.host}`.endsWith('.pkg.example.test')).toBe(true);
        expect(decideHost({ policy, host: first.host, port: 443 })).toEqual(first);
      }),
      { numRuns: 3000 },
    );
  });
});
