import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type ChainOptions, makeChain } from '@firecrew/egress-proxy';
import { CompanyProxy, PROXY_LOGIN } from '@firecrew/egress-proxy/testing';
import { readUpstream } from '@firecrew/model-route';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BrokerLimits, type BrokerRoute, newHandle } from '../src/index.ts';
import { type Rig, SECRET, startRig, until } from './rig.ts';

const pem = (name: string) => readFileSync(new URL(`../../model-proxy/test/tls/${name}.pem`, import.meta.url), 'utf8');
/** The name of the certificate; the proxy alone knows where it is. */
const HOST = 'api.model.test';

let proxy: CompanyProxy;
let upstream: Server;
let seen: (readonly [path: string | undefined, credential: unknown, proxyLogin: unknown])[];
let rig: Rig;
beforeEach(async () => {
  seen = [];
  upstream = createServer({ cert: pem('test-only-cert'), key: pem('test-only-key') }, (request, response) => {
    seen.push([request.url, request.headers['x-api-key'], request.headers['proxy-authorization']]);
    if (request.url === '/v1/messages?beta=wait') response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    else response.writeHead(request.url === '/v1/messages?beta=denied' ? 403 : 200, { 'content-type': 'application/json' }).end('{}');
  }).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  proxy = await CompanyProxy.start();
  proxy.names.set(HOST, '127.0.0.1');
});
afterEach(async () => {
  await rig.stop();
  await proxy.stop();
  upstream.closeAllConnections();
  upstream.close();
});

const port = () => (upstream.address() as AddressInfo).port;
const chainOf = (credential: ChainOptions['credential'] = async () => PROXY_LOGIN, url = proxy.url): ChainOptions => ({
  chain: makeChain({ url, credential: null }, {}).chain,
  credential,
});
async function start(route: Partial<BrokerRoute> = {}, limits: Partial<BrokerLimits> = {}): Promise<void> {
  const upstreamOf = readUpstream(`https://${HOST}:${port()}`);
  rig = await startRig({ upstream: upstreamOf, ca: pem('test-only-cert'), chain: chainOf(), ...route }, limits);
}

describe('a request through the proxy of the operator', () => {
  it('asks it for the name, and reaches the upstream with TLS that is verified to its end', async () => {
    await start();
    expect(await rig.send()).toMatchObject({ status: 200, refused: undefined, body: '{}' });
    expect(await rig.send()).toMatchObject({ status: 200 });
    // One tunnel carries both; the login of the proxy goes no further than to the proxy.
    expect(proxy.asked).toEqual([`${HOST}:${port()}`]);
    expect(seen).toEqual(Array(2).fill(['/v1/messages', SECRET, undefined]));
  });

  it('is refused where whoever answers cannot show the name, and no byte of it is sent', async () => {
    proxy.names.set('other.model.test', '127.0.0.1');
    await start({ upstream: readUpstream(`https://other.model.test:${port()}`) });
    expect((await rig.send()).refused).toEqual({ reason: 'upstream_unreachable', isUnsent: true });
    expect(proxy.asked).toHaveLength(1);
    expect(seen).toEqual([]);
  });

  it('is refused where the certificate is of nobody that is trusted', async () => {
    rig = await startRig({ upstream: readUpstream(`https://${HOST}:${port()}`), chain: chainOf() });
    expect((await rig.send()).refused).toEqual({ reason: 'upstream_unreachable', isUnsent: true });
    expect(seen).toEqual([]);
  });

  it.each<readonly [string, string, () => ChainOptions, string | undefined]>([
    ['takes no login', 'chain_auth_refused', () => chainOf(async () => 'robot:an-old-word'), undefined],
    ['refuses the host', 'chain_refused', () => chainOf(), '403 Forbidden'],
    ['cannot reach it', 'chain_upstream_failed', () => chainOf(), '502 Bad Gateway'],
    ['says something else', 'chain_answer_invalid', () => chainOf(), '302 Found'],
    ['is not there', 'chain_unreachable', () => chainOf(async () => PROXY_LOGIN, 'http://127.0.0.2:1'), undefined],
    ['has a login that cannot be read', 'chain_credential_unreadable', () => chainOf(() => Promise.reject(new Error('none'))), undefined],
  ])('says when that %s: %s', async (_what, reason, chain, refusal) => {
    proxy.refusal = refusal;
    await start({ chain: chain() });
    expect((await rig.send()).refused).toEqual({ reason, isUnsent: true });
    expect(seen).toEqual([]);
  });

  it('tells a 403 of the upstream from one of the proxy', async () => {
    await start();
    expect(await rig.send({ path: '/v1/messages?beta=denied' })).toMatchObject({ status: 403, refused: undefined });
    expect(rig.refusedCredentials).toEqual([['r', 403]]);
    // Another turn has connections of its own.
    const handle = newHandle();
    rig.broker.setHandles([{ handle, route: 'r', validUntilMs: 1_000 }]);
    proxy.refusal = '403 Forbidden';
    expect((await rig.send({ handle })).refused).toEqual({ reason: 'chain_refused', isUnsent: true });
    expect(rig.refusedCredentials).toHaveLength(1);
  });

  it('is cut where the proxy vanishes in the middle of an answer, and the next one goes through a new tunnel', async () => {
    await start();
    const call = rig.begin({ path: '/v1/messages?beta=wait' });
    await until(() => call.text() !== '', 'the stream');
    proxy.cut();
    expect(await call.ended).toBe('cut');
    expect((await rig.send()).status).toBe(200);
    expect(proxy.asked).toHaveLength(2);
  });

  it('ends with its handle while the tunnel is being opened', async () => {
    let asked = 0;
    const never = () => {
      asked += 1;
      return new Promise<string>(() => undefined);
    };
    await start({ chain: chainOf(never) });
    const call = rig.begin();
    await until(() => asked === 1, 'the tunnel');
    rig.broker.setHandles([]);
    expect(await call.ended).toBe('cut');
  });

  it('has a time of its own for the tunnel', async () => {
    await start({ chain: chainOf(() => new Promise(() => undefined)) }, { tunnelMs: 50 });
    expect((await rig.send()).refused).toEqual({ reason: 'chain_timeout', isUnsent: true });
  });
});
