import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server as PlainServer } from 'node:http';
import { createServer as createTlsServer, type Server } from 'node:https';
import { type AddressInfo, createServer as createRawServer, type Server as RawServer } from 'node:net';
import { makeChain } from '@firecrew/egress-proxy';
import { CompanyProxy, PROXY_LOGIN } from '@firecrew/egress-proxy/testing';
import { readUpstream } from '@firecrew/model-route';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { probeUpstream } from '../src/index.ts';

const pem = (name: string) => readFileSync(new URL(`../../model-proxy/test/tls/${name}.pem`, import.meta.url), 'utf8');
const ca = pem('test-only-cert');
const HOST = 'api.model.test';

let proxy: CompanyProxy;
let upstream: Server;
let local: PlainServer;
let silent: RawServer;
let requests: number;
const portOf = (one: RawServer): number => (one.address() as AddressInfo).port;
beforeAll(async () => {
  const serve = (): void => {
    requests += 1;
  };
  upstream = createTlsServer({ cert: ca, key: pem('test-only-key') }, serve);
  local = createServer(serve);
  silent = createRawServer();
  for (const one of [upstream, local, silent]) await once(one.listen(0, '127.0.0.1'), 'listening');
  proxy = await CompanyProxy.start();
  proxy.names.set(HOST, '127.0.0.1').set('other.model.test', '127.0.0.1');
});
afterAll(async () => {
  await proxy.stop();
  for (const one of [upstream, local, silent]) one.close();
});
beforeEach(() => {
  requests = 0;
  proxy.refusal = undefined;
});

const chainOf = (login = PROXY_LOGIN, url = proxy.url) => ({ ...makeChain({ url, credential: null }, {}), credential: async () => login });
const at = (host: string, port = portOf(upstream), scheme = 'https') => readUpstream(`${scheme}://${host}:${port}`);

describe('the way to an upstream', () => {
  it('is gone as far as verified TLS, through the proxy, and no request is made', async () => {
    expect(await probeUpstream({ upstream: at(HOST), ca, chain: chainOf() })).toEqual({ ok: true });
    expect(await probeUpstream({ upstream: at('127.0.0.1', portOf(local), 'http') })).toEqual({ ok: true });
    expect(requests).toBe(0);
  });

  it.each([
    ['dns', 'a name that nobody knows', () => ({ upstream: at('nobody.invalid') }), /^(?:ENOTFOUND|EAI_AGAIN)$/],
    ['connect', 'a port that nobody listens at', () => ({ upstream: at('127.0.0.1', 1) }), /^ECONNREFUSED$/],
    ['tls', 'an authority that is not trusted', () => ({ upstream: at(HOST), chain: chainOf() }), /SELF_SIGNED/],
    ['tls', 'another name', () => ({ upstream: at('other.model.test'), ca, chain: chainOf() }), /^ERR_TLS_CERT_ALTNAME_INVALID$/],
    ['tls', 'another name, directly', () => ({ upstream: at('127.0.0.1'), ca }), /^ERR_TLS_CERT_ALTNAME_INVALID$/],
    ['tls', 'what speaks no TLS', () => ({ upstream: at('127.0.0.1', portOf(local)), ca }), /^E/],
    ['proxy', 'a login that is refused', () => ({ upstream: at(HOST), ca, chain: chainOf('robot:old') }), /407.*chain_auth_refused/],
    [
      'proxy',
      'a proxy that is not there',
      () => ({ upstream: at(HOST), ca, chain: chainOf('a:b', 'http://127.0.0.2:1') }),
      /chain_unreachable/,
    ],
  ] as const)('ends at %s for %s', async (stage, _what, route, detail) => {
    expect(await probeUpstream(route())).toEqual({ ok: false, stage, detail: expect.stringMatching(detail) });
    expect(requests).toBe(0);
  });

  it('ends where it is when its time is over', async () => {
    expect(await probeUpstream({ upstream: at('127.0.0.1', portOf(silent)), ca }, 100)).toMatchObject({ ok: false, stage: 'tls' });
    expect(await probeUpstream({ upstream: at(HOST), ca }, 100, () => new Promise(() => undefined))).toEqual({
      ok: false,
      stage: 'dns',
      detail: 'nothing came within 100 ms',
    });
  });
});
