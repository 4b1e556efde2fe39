import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket, type Server as TlsServer, connect as tlsConnect } from 'node:tls';
import { createPolicy, loadAllowList } from '@firecrew/egress-policy';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createEgressProxy, defaultDial, type EgressAuditLine, type EgressProxy } from '../src/index.ts';
import { connectHead, makeClient, openTunnel, startHarness, statusOf, until } from './harness.ts';

const certFile = new URL('./tls/test-only-cert.pem', import.meta.url);
const cert = await readFile(certFile);
const key = await readFile(new URL('./tls/test-only-key.pem', import.meta.url));

let server: TlsServer;
let serverPort: number;

beforeEach(async () => {
  server = createServer({ key, cert }, (socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  serverPort = (server.address() as AddressInfo).port;
});

afterEach(() => {
  server.close();
});

async function secure(socket: ReturnType<typeof makeClient>['socket'], servername: string): Promise<TLSSocket> {
  socket.removeAllListeners('data');
  const tls = tlsConnect({ socket, servername, ca: cert });
  await once(tls, 'secureConnect');
  return tls;
}

/** A proxy whose dialler leads to the TLS server. */
async function startTls() {
  return await startHarness({ upstream: (socket) => pipeTo(socket) });
}

function pipeTo(socket: import('node:net').Socket): void {
  const inner = makeClient(serverPort).socket;
  socket.pipe(inner).pipe(socket);
}

describe('a real TLS client', () => {
  it('talks to the allowed host, and every byte of its hello arrives', async () => {
    const harness = await startTls();
    try {
      const client = await openTunnel(harness);
      const tls = await secure(client.socket, 'api.example.test');
      tls.write('GET / HTTP/1.1\r\nHost: api.example.test\r\n\r\n');
      const chunks: Buffer[] = [];
      tls.on('data', (chunk) => chunks.push(chunk));
      await once(tls, 'end');
      expect(chunks.join('')).toContain('hello');
      tls.destroy();
      await until(() => harness.lines.some(({ event }) => event === 'end'), 'the end line');
    } finally {
      await harness.stop();
    }
  });

  it('is cut when its server name is not the host of the tunnel, and the upstream gets no byte', async () => {
    const harness = await startHarness();
    try {
      const client = await openTunnel(harness);
      client.socket.removeAllListeners('data');
      const tls = tlsConnect({ socket: client.socket, servername: 'other.example.test', ca: cert });
      await expect(once(tls, 'secureConnect')).rejects.toThrow();
      await until(() => harness.lines.length === 2, 'the refusal line');
      expect(harness.lines[1]).toMatchObject({
        event: 'refused',
        verdict: 'denied',
        reason: 'server_name_mismatch',
        host: 'api.example.test',
      });
      expect(harness.arrivals.flatMap(({ chunks }) => chunks)).toEqual([]);
    } finally {
      await harness.stop();
    }
  });
});

describe('the default resolver and dialler', () => {
  async function localProxy(
    addresses: readonly string[],
  ): Promise<{ proxy: EgressProxy; lines: EgressAuditLine[]; run: () => Promise<string> }> {
    const lines: EgressAuditLine[] = [];
    const policy = createPolicy({
      rules: loadAllowList([`localhost:${serverPort}`]),
      addressRules: addresses.length === 0 ? [] : [{ host: 'localhost', addresses }],
      ownAddresses: ['127.0.0.1', '::1'],
    });
    const proxy = createEgressProxy({ policy, ids: { vm: 'vm_test' }, audit: (line) => void lines.push(line) });
    const { createServer: createTcp } = await import('node:net');
    const front = createTcp({ allowHalfOpen: true }, (socket) => proxy.handle(socket));
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    const run = async (): Promise<string> => {
      const client = makeClient((front.address() as AddressInfo).port);
      client.socket.write(connectHead(`localhost:${serverPort}`));
      await until(() => statusOf(client) !== undefined, 'an answer');
      if (statusOf(client) === 200) (await secure(client.socket, 'localhost')).destroy();
      client.socket.destroy();
      front.close();
      await proxy.close();
      return client.text();
    };
    return { proxy, lines, run };
  }

  it('reach a local server that the operator has named', async () => {
    const { run, lines } = await localProxy(['127.0.0.1', '::1']);
    expect(await run()).toMatch(/^HTTP\/1\.1 200 /);
    expect(lines[0]).toMatchObject({ event: 'open', host: 'localhost' });
  });

  it('do not reach it without the operator', async () => {
    const { run } = await localProxy([]);
    expect(await run()).toMatch(/^HTTP\/1\.1 403 .*\(own_address\)/);
  });

  it('report a refused port as unreachable', async () => {
    const { signal } = new AbortController();
    server.close();
    await once(server, 'close');
    await expect(defaultDial({ host: 'x', address: '127.0.0.1', family: 4, port: serverPort, signal })).rejects.toThrow();
  });
});
