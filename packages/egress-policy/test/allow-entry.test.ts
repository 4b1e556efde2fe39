import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ALLOW_ENTRIES_MAX,
  type AllowEntry,
  EgressConfigError,
  formatAllowRule,
  loadAllowList,
  parseAllowEntry,
  parseAllowList,
} from '../src/index.ts';

const tls443 = { port: 443, protocol: 'tls' };

describe('an allow-list entry', () => {
  it.each<[AllowEntry, object]>([
    ['api.example.test', { host: 'api.example.test', subdomains: false, ...tls443 }],
    ['.example.test', { host: 'example.test', subdomains: true, ...tls443 }],
    [' API.Example.Test. ', { host: 'api.example.test', subdomains: false, ...tls443 }],
    ['api.example.test:8443', { host: 'api.example.test', subdomains: false, port: 8443, protocol: 'tls' }],
    ['git.example.test:22/tcp', { host: 'git.example.test', subdomains: false, port: 22, protocol: 'tcp' }],
    ['api.example.test:443/tls', { host: 'api.example.test', subdomains: false, ...tls443 }],
    ['localhost:4873', { host: 'localhost', subdomains: false, port: 4873, protocol: 'tls' }],
    [
      { host: 'api.example.test', protocol: 'tls' },
      { host: 'api.example.test', subdomains: false, ...tls443 },
    ],
    [{ host: '.example.test' }, { host: 'example.test', subdomains: true, ...tls443 }],
    [
      { host: 'db.example.test', port: 5432, protocol: 'tcp' },
      { host: 'db.example.test', subdomains: false, port: 5432, protocol: 'tcp' },
    ],
  ])('%j is read', (entry, rule) => {
    expect(parseAllowEntry(entry)).toEqual({ ok: true, rule });
  });

  it.each<[AllowEntry, string]>([
    ['', 'empty_entry'],
    [' \t', 'empty_entry'],
    [{ host: '' }, 'empty_entry'],
    ['https://api.example.test', 'url_not_allowed'],
    ['api.example.test/path', 'path_not_allowed'],
    ['api.example.test:443/tcp/x', 'path_not_allowed'],
    ['*', 'wildcard_not_allowed'],
    ['*.example.test', 'wildcard_not_allowed'],
    ['10.0.0.5', 'address_not_allowed'],
    ['[::1]', 'address_not_allowed'],
    ['[::1]:443', 'address_not_allowed'],
    ['[10.0.0.5]:443', 'address_not_allowed'],
    ['::1', 'address_not_allowed'],
    ['0x7f.1', 'address_not_allowed'],
    ['..example.test', 'bad_name'],
    ['bücher.example.test', 'bad_name'],
    ['api.example.test\0', 'bad_name'],
    ['.test', 'too_broad'],
    ['.', 'bad_name'],
    ['api.example.test:', 'bad_port'],
    ['api.example.test:0', 'bad_port'],
    ['api.example.test:65536', 'bad_port'],
    ['api.example.test:0443', 'bad_port'],
    [{ host: 'api.example.test', port: 1.5 }, 'bad_port'],
    ['api.example.test:443/udp', 'bad_protocol'],
    [{ host: 'api.example.test', protocol: 'tcp' }, 'protocol_needs_port'],
    [{ host: 'api.example.test', port: 443, protocol: 'udp' as 'tcp' }, 'bad_protocol'],
  ])('%j is refused as %s', (entry, reason) => {
    expect(parseAllowEntry(entry)).toMatchObject({ ok: false, problem: { reason } });
  });

  it('has one text that reads back as the same rule', () => {
    const label = fc.stringMatching(/^[a-z_][a-z0-9_]{0,10}$/);
    const name = fc.array(label, { minLength: 2, maxLength: 4 }).map((labels) => labels.join('.'));
    const rule = fc.record({
      host: name,
      subdomains: fc.boolean(),
      port: fc.integer({ min: 1, max: 65_535 }),
      protocol: fc.constantFrom('tls' as const, 'tcp' as const),
    });
    fc.assert(
      fc.property(rule, (given) => {
        expect(parseAllowEntry(formatAllowRule(given))).toEqual({ ok: true, rule: given });
      }),
    );
  });
});

describe('an allow-list', () => {
  it('is refused whole, with every bad entry', () => {
    expect(parseAllowList(['api.example.test', '*', '10.0.0.1'])).toMatchObject({
      ok: false,
      problems: [{ entry: '*' }, { entry: '10.0.0.1', reason: 'address_not_allowed' }],
    });
  });

  it('stops a start with a coded error that names the entry', () => {
    expect(() => loadAllowList(['https://x.test'])).toThrow(EgressConfigError);
    expect(() => loadAllowList(['https://x.test'])).toThrow(/"https:\/\/x\.test": write the host name alone/);
    expect(new EgressConfigError([]).code).toBe('egress_config');
  });

  it('may have as many entries as the limit says and no more', () => {
    expect(ALLOW_ENTRIES_MAX).toBe(20_000);
    const entries = Array.from({ length: ALLOW_ENTRIES_MAX }, (_, index) => `h${index}.example.test`);
    expect(parseAllowList(entries).ok).toBe(true);
    expect(parseAllowList([...entries, 'one.more.test'])).toMatchObject({ ok: false, problems: [{ reason: 'too_many_entries' }] });
  });
});
