import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ChainInput, loadChain } from '@firecrew/egress-policy';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CHAIN_CREDENTIAL_MAX_BYTES, readChainCredential } from '../src/index.ts';
import {
  type Client,
  connectHead,
  type Harness,
  type HarnessOptions,
  PUBLIC_V4,
  startHarness,
  statusOf,
  tunnelBytes,
  until,
} from './harness.ts';

const PROXY = '10.9.9.9';
const SECRET = 'robot:pass-word-of-the-proxy';
const ALLOW = [
  { host: 'api.example.test', port: 443, protocol: 'tcp' as const },
  { host: 'tls.example.test', port: 443, protocol: 'tls' as const },
  { host: 'intern.example.test', port: 443, protocol: 'tcp' as const },
  { host: 'proxy.corp.test', port: 3128, protocol: 'tcp' as const },
];
const OPEN = 'HTTP/1.1 200 Connection established\r\n\r\n';

let harness: Harness;
afterEach(() => harness?.stop());

/** A proxy that answers each CONNECT with what `answer` gives, and echoes what comes after it. */
function proxyThat(answer: (target: string, socket: Socket) => string | undefined) {
  return (socket: Socket): void => {
    let head = '';
    const read = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', read);
      const text = answer(/^CONNECT (\S+) /.exec(head)?.[1] ?? '', socket);
      if (text === undefined) return;
      socket.write(text);
      socket.on('data', (more: Buffer) => socket.write(more));
    };
    socket.on('data', read);
    socket.on('end', () => socket.end());
  };
}

interface ChainTest extends HarnessOptions {
  readonly rules?: Partial<ChainInput>;
  readonly credential?: () => Promise<string>;
}

/** Every dial of the harness leads to its one upstream, which is the proxy here; `dialled` says for which address. */
async function start({ rules, credential, ...options }: ChainTest = {}): Promise<void> {
  const chain = loadChain({ url: 'http://proxy.corp.test:3128', ...rules });
  harness = await startHarness({
    allow: ALLOW,
    upstream: proxyThat(() => OPEN),
    resolve: (host) => [host === 'proxy.corp.test' ? PROXY : PUBLIC_V4],
    chain: { chain, ...(credential && { credential }) },
    ...options,
  });
}

async function ask(target = 'api.example.test:443', more = ''): Promise<Client> {
  const client = harness.connect();
  client.socket.write(connectHead(target).replace(/\r\n$/, `${more}\r\n`));
  await until(() => statusOf(client) !== undefined, 'an answer');
  return client;
}

async function echo(client: Client, text: string): Promise<void> {
  client.socket.write(text);
  await until(() => tunnelBytes(client).toString() === text, 'the echo');
}

const sent = (at = 0) => Buffer.concat(harness.arrivals[at]?.chunks ?? []).toString('latin1');

describe('a tunnel through the proxy of the operator', () => {
  it('asks it for the address that was judged, and says so in each line', async () => {
    await start();
    const client = await ask('api.example.test:443', 'Proxy-Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n');
    await echo(client, 'through');
    client.socket.end();
    await until(() => harness.lines.length === 2, 'the end');
    expect(harness.dialled).toEqual([PROXY]);
    expect(sent()).toBe(`CONNECT ${PUBLIC_V4}:443 HTTP/1.1\r\nHost: ${PUBLIC_V4}:443\r\n\r\nthrough`);
    expect(harness.lines).toMatchObject([
      { event: 'open', via: 'proxy', addresses: [PUBLIC_V4] },
      { event: 'end', via: 'proxy', address: PUBLIC_V4, bytesIn: 7, bytesOut: 7 },
    ]);
  });

  it('shows the credential to the proxy, and nowhere else', async () => {
    await start({ credential: () => Promise.resolve(SECRET) });
    const client = await ask();
    client.socket.end();
    await until(() => harness.lines.length === 2, 'the end');
    const shown = Buffer.from(SECRET).toString('base64');
    expect(sent()).toContain(`\r\nProxy-Authorization: Basic ${shown}\r\n\r\n`);
    const told = JSON.stringify(harness.lines) + client.text() + JSON.stringify(harness.proxy.stats());
    for (const form of [SECRET, shown, 'pass-word']) expect(told).not.toContain(form);
  });

  it('asks for an IPv6 address in brackets', async () => {
    await start({ resolve: (host) => [host === 'proxy.corp.test' ? PROXY : '2606:4700::1'] });
    expect(statusOf(await ask())).toBe(200);
    expect(sent()).toContain('CONNECT [2606:4700::1]:443 HTTP/1.1\r\n');
  });

  it('is none for a host whose address is refused: the proxy is not asked', async () => {
    await start({ resolve: (host) => [host === 'proxy.corp.test' ? PROXY : '10.0.0.1'] });
    const client = await ask();
    expect(client.text()).toContain('403 Forbidden (private_address)');
    expect(harness.dialled).toEqual([]);
    expect(harness.lines).toMatchObject([{ reason: 'private_address', via: 'proxy' }]);
  });

  it('is tried at the next address where the proxy could not reach one', async () => {
    await start({
      resolve: (host) => (host === 'proxy.corp.test' ? [PROXY] : ['93.184.216.1', '93.184.216.2']),
      upstream: proxyThat((target) => (target.startsWith('93.184.216.1:') ? 'HTTP/1.1 502 Bad Gateway\r\n\r\n' : OPEN)),
    });
    const client = await ask();
    client.socket.end();
    await until(() => harness.lines.length === 2, 'the end');
    expect(harness.lines.at(-1)).toMatchObject({ event: 'end', address: '93.184.216.2' });
  });

  it('takes no proxy from the environment', async () => {
    const names = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'ALL_PROXY'];
    const before = names.map((name) => process.env[name]);
    for (const name of names) process.env[name] = 'http://10.66.66.66:3128';
    try {
      harness = await startHarness({ allow: ALLOW, upstream: (socket) => socket.pipe(socket) });
      await echo(await ask(), 'direct');
      expect(harness.dialled).toEqual([PUBLIC_V4]);
      expect(sent()).toBe('direct');
    } finally {
      for (const [at, name] of names.entries()) {
        if (before[at] === undefined) delete process.env[name];
        else process.env[name] = before[at];
      }
    }
  });
});

describe('a proxy that has to resolve names', () => {
  it('is asked for the name, nothing is looked up, and each line says so', async () => {
    await start({ rules: { mode: 'name-only' } });
    const client = await ask();
    await echo(client, 'through');
    client.socket.end();
    await until(() => harness.lines.length === 2, 'the end');
    expect(harness.lookedUp).toEqual(['proxy.corp.test']);
    expect(sent()).toBe('CONNECT api.example.test:443 HTTP/1.1\r\nHost: api.example.test:443\r\n\r\nthrough');
    expect(harness.lines.map(({ event, via, address }) => [event, via, address])).toEqual([
      ['open', 'name-only', undefined],
      ['end', 'name-only', undefined],
    ]);
  });

  it('is asked for no name that is not on the list', async () => {
    await start({ rules: { mode: 'name-only' } });
    expect((await ask('evil.test:443')).text()).toContain('(not_listed)');
    expect([harness.dialled, harness.lookedUp]).toEqual([[], []]);
  });

  it('stays asked when a policy that allows the name takes the place of another', async () => {
    await start({ rules: { mode: 'name-only' } });
    const client = await ask();
    expect(harness.proxy.replacePolicy(harness.policy)).toBe(0);
    await echo(client, 'still here');
  });
});

describe('a host that goes past the proxy', () => {
  it('is dialled directly, at the address that was judged', async () => {
    await start({ rules: { mode: 'name-only', noProxy: ['intern.example.test'] }, upstream: (socket) => socket.pipe(socket) });
    await echo(await ask('intern.example.test:443'), 'direct');
    expect(harness.dialled).toEqual([PUBLIC_V4]);
    expect(sent()).toBe('direct');
    expect(harness.lines[0]).not.toHaveProperty('via');
  });
});

describe('the proxy itself', () => {
  it.each([
    ['by its name', 'proxy.corp.test:3128', {}],
    ['by another name', 'api.example.test:443', { resolve: () => [PROXY] }],
    ['past itself', 'intern.example.test:443', { rules: { noProxy: ['intern.example.test'] }, resolve: () => [PROXY] }],
    [
      'by another form of its address',
      'api.example.test:443',
      { rules: { url: 'http://8.8.4.4:3128' }, resolve: () => ['64:ff9b::8.8.4.4'] },
    ],
    ['where names alone are judged', 'proxy.corp.test:3128', { rules: { mode: 'name-only' as const } }],
  ])('is no destination %s, whatever a rule opens', async (_how, target, options) => {
    const addressRules = ['proxy.corp.test', 'api.example.test', 'intern.example.test'].map((host) => ({ host, addresses: [PROXY] }));
    await start({ ...options, addressRules });
    const client = await ask(target);
    expect(client.text()).toContain('403 Forbidden (chain_itself)');
    expect(harness.dialled).toEqual([]);
    expect(harness.lines).toMatchObject([{ event: 'refused', verdict: 'denied', reason: 'chain_itself' }]);
  });
});

describe('an answer of the proxy', () => {
  it.each([
    ['that wants a credential', 'HTTP/1.1 407 Proxy Authentication Required\r\n\r\n', 502, 'chain_auth_refused', 'unreachable'],
    ['that refuses', 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno', 403, 'chain_refused', 'denied'],
    ['that could not reach it', 'HTTP/1.1 502 Bad Gateway\r\n\r\n', 502, 'chain_upstream_failed', 'unreachable'],
    ['that is garbage', 'SSH-2.0-OpenSSH\r\n\r\n', 502, 'chain_answer_invalid', 'unreachable'],
    ['that does not end', 'x'.repeat(9_000), 502, 'chain_answer_invalid', 'unreachable'],
    ['that leads elsewhere', 'HTTP/1.1 302 Found\r\nLocation: http://x\r\n\r\n', 502, 'chain_answer_invalid', 'unreachable'],
    ['that goes on before the guest spoke', `${OPEN}early`, 502, 'chain_early_bytes', 'unreachable'],
  ])('%s is a refusal that says so', async (_what, answer, status, reason, verdict) => {
    await start({ upstream: proxyThat(() => answer) });
    const client = await ask('tls.example.test:443');
    expect(client.text()).toContain(`HTTP/1.1 ${status} `);
    expect(client.text()).toContain(`x-firecrew-reason: ${reason}\r\n`);
    expect(client.text()).toMatch(/firecrew egress: tls\.example\.test:443 .*the proxy of the operator/);
    expect(harness.lines.at(-1)).toMatchObject({ event: 'refused', verdict, reason, via: 'proxy', host: 'tls.example.test' });
    expect(harness.lines).toHaveLength(2);
    expect(harness.arrivals).toHaveLength(1);
  });

  it.each(['address', 'name-only'] as const)('that does not come is one, too, by %s', async (mode) => {
    await start({ rules: { mode }, limits: { dialMs: 60 }, upstream: () => undefined });
    const client = await ask();
    expect(client.text()).toContain('504 Gateway Timeout (chain_timeout)');
    await until(() => harness.arrivals[0]?.socket.readableEnded === true || harness.arrivals[0]?.socket.destroyed === true, 'the end');
  });

  it('that ends early is one, too', async () => {
    await start({ upstream: proxyThat((_target, socket) => void socket.end('HTTP/1.1 200 OK\r\nX:')) });
    expect((await ask()).text()).toContain('(chain_answer_invalid)');
  });

  it('may have the first bytes of a server that speaks first, where any bytes may pass', async () => {
    await start({ upstream: proxyThat(() => `${OPEN}SSH-2.0`) });
    const client = await ask();
    expect(statusOf(client)).toBe(200);
    await until(() => tunnelBytes(client).toString() === 'SSH-2.0', 'the first bytes');
  });

  it.each(['address', 'name-only'] as const)('is none where it cannot be found or reached, by %s', async (mode) => {
    await start({
      rules: { mode },
      resolve: (host) => (host === 'proxy.corp.test' ? Promise.reject(new Error('ENOTFOUND')) : [PUBLIC_V4]),
    });
    expect((await ask()).text()).toContain('(chain_unreachable)');
    await harness.stop();
    const beforeDial = () => {
      throw new Error('ECONNREFUSED');
    };
    await start({ rules: { mode }, beforeDial });
    expect((await ask()).text()).toContain('(chain_unreachable)');
    expect(harness.lines.at(-1)?.address).not.toBe(PROXY);
  });

  it('is not asked for where the credential cannot be read', async () => {
    await start({ credential: () => Promise.reject(new Error(`cannot be read: ${SECRET}`)) });
    const client = await ask();
    expect(client.text()).toContain('(chain_credential_unreadable)');
    expect(sent()).toBe('');
    expect(JSON.stringify(harness.lines) + client.text()).not.toContain('pass-word');
  });
});

describe('the credential of the proxy', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'fc-chain-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('is one line of a file, or a variable', async () => {
    writeFileSync(join(folder, 'credential'), `${SECRET}\n`);
    expect(await readChainCredential({ file: join(folder, 'credential') }, {})).toBe(SECRET);
    expect(await readChainCredential({ variable: 'PROXY_LOGIN' }, { PROXY_LOGIN: 'a:' })).toBe('a:');
    expect(
      await readChainCredential({ variable: 'PROXY_LOGIN' }, { PROXY_LOGIN: `u:${'x'.repeat(CHAIN_CREDENTIAL_MAX_BYTES - 2)}` }),
    ).toHaveLength(CHAIN_CREDENTIAL_MAX_BYTES);
  });

  it.each([
    ['no colon', 'secretword'],
    ['no name', ':secretword'],
    ['a second line', 'a:secretword\r\nX: y'],
    ['nothing', ''],
    ['a control character', 'a:secret\0word'],
    ['too much', `secretword:${'x'.repeat(CHAIN_CREDENTIAL_MAX_BYTES)}`],
  ])('is none with %s, and nothing of it is told', async (_what, text) => {
    await expect(readChainCredential({ variable: 'PROXY_LOGIN' }, { PROXY_LOGIN: text })).rejects.toThrow(/PROXY_LOGIN is not one line/);
    await expect(readChainCredential({ variable: 'PROXY_LOGIN' }, { PROXY_LOGIN: text })).rejects.not.toThrow(/secret/);
  });

  it('that is missing is an error, not an empty one', async () => {
    await expect(readChainCredential({ variable: 'PROXY_LOGIN' }, {})).rejects.toThrow(/PROXY_LOGIN is missing/);
    await expect(readChainCredential({ file: join(folder, 'absent') }, {})).rejects.toThrow(/ENOENT/);
  });
});
