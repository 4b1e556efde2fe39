import { describe, expect, it } from 'vitest';
import { CHAIN_MODES, decideOperatorWay, decideWay, EgressConfigError, loadChain, NO_PROXY_MAX } from '../src/index.ts';

describe("the operator's proxy", () => {
  it.each([
    ['http://proxy.example.test:3128', { host: 'proxy.example.test', port: 3128 }],
    ['http://Proxy.Example.test.:8080/', { host: 'proxy.example.test', port: 8080 }],
    ['http://10.0.0.7:3128', { host: '10.0.0.7', port: 3128 }],
    ['http://[2606:4700:0::7]:3128', { host: '2606:4700::7', port: 3128 }],
  ])('may be %s', (url, chain) => {
    expect(loadChain({ url })).toEqual({ ...chain, mode: 'address', direct: [] });
  });

  it.each([
    'https://proxy.example.test:3128',
    'socks5://proxy.example.test:1080',
    'http://proxy.example.test',
    'http://proxy.example.test:0',
    'http://proxy.example.test:70000',
    'http://user:secret-word@proxy.example.test:3128',
    'http://proxy.example.test:3128/path',
    'http://proxy.example.test:3128?secret-word',
    'http://pro xy:3128',
    'proxy.example.test:3128',
    'http://[zz]:3128',
    'http://0x7f.1:3128',
    '',
  ])('may not be %j, and no message repeats it', (url) => {
    expect(() => loadChain({ url })).toThrow(EgressConfigError);
    expect(() => loadChain({ url })).not.toThrow(/secret-word/);
  });

  it.each([
    ['an address', ['10.0.0.1']],
    ['a port', ['a.test:443']],
    ['a star', ['*']],
    ['too many', Array.from({ length: NO_PROXY_MAX + 1 }, (_, at) => `h${at}.test`)],
  ])('has no list of hosts past it with %s', (_what, noProxy) => {
    expect(() => loadChain({ url: 'http://p.test:1', noProxy })).toThrow(EgressConfigError);
  });
});

describe('the way to a host', () => {
  const url = 'http://proxy.corp.test:3128';
  const noProxy = ['intern.test', '.Corp.test'];
  it.each([
    ['api.example.test', 'address', 'proxy'],
    ['api.example.test', 'name-only', 'name-only'],
    ['intern.test', 'address', 'direct'],
    ['sub.intern.test', 'address', 'proxy'],
    ['git.corp.test', 'name-only', 'direct'],
    ['corp.test', 'address', 'direct'],
    ['notcorp.test', 'address', 'proxy'],
    ['proxy.corp.test', 'address', 'proxy_itself'],
    ['proxy.corp.test', 'name-only', 'proxy_itself'],
  ] as const)('%s by %s is %s', (host, mode, way) => {
    expect(decideWay(loadChain({ url, mode, noProxy }), host)).toBe(way);
  });

  it('is direct where there is no proxy', () => {
    expect(decideWay(undefined, 'proxy.corp.test')).toBe('direct');
  });
});

describe('the way to what the operator named themselves', () => {
  const url = 'http://proxy.corp.test:3128';
  const noProxy = ['intern.test', '.Corp.test'];
  it.each([
    ['api.example.test', 'proxy'],
    ['API.Example.Test.', 'proxy'],
    ['203.0.113.7', 'proxy'],
    ['10.0.0.7', 'proxy'],
    ['2606:4700::7', 'proxy'],
    ['notlocalhost', 'proxy'],
    ['localhost.example.test', 'proxy'],
    ['sub.intern.test', 'proxy'],
    ['intern.test', 'direct'],
    ['git.corp.test', 'direct'],
    ['proxy.corp.test', 'direct'],
    ['localhost', 'direct'],
    ['LOCALHOST.', 'direct'],
    ['api.localhost', 'direct'],
    ['127.0.0.1', 'direct'],
    ['127.9.9.9', 'direct'],
    ['::1', 'direct'],
    ['[::1]', 'direct'],
    ['[2606:4700::7]', 'proxy'],
    ['::ffff:127.0.0.1', 'direct'],
    ['0.0.0.0', 'direct'],
    ['::', 'direct'],
  ] as const)('%s is %s, by either mode', (host, way) => {
    for (const mode of CHAIN_MODES) expect(decideOperatorWay(loadChain({ url, mode, noProxy }), host)).toBe(way);
  });

  it('is direct to the address of the proxy, and where there is no proxy', () => {
    expect(decideOperatorWay(loadChain({ url: 'http://10.0.0.7:3128' }), '10.0.0.7')).toBe('direct');
    expect(decideOperatorWay(undefined, 'api.example.test')).toBe('direct');
  });
});
