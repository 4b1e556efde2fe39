import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer as createPlainServer, type Server as PlainServer } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CompanyProxy, PROXY_LOGIN } from '@firecrew/egress-proxy/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';

const NODE_AGENT = fileURLToPath(new URL('../..', import.meta.url));
const TLS = new URL('../../../../packages/model-proxy/test/tls/', import.meta.url);
/** The name of the certificate, which the proxy alone knows: the server of this node. */
const HOST = 'api.model.test';
/** What a node does with its server: a call and a web socket, by its settings; it trusts the test's authority by its environment, as services do. */
const PROGRAM = `
import { request } from 'undici';
import WebSocket from 'ws';
import { ServerConnections } from './src/agent/server-connections.ts';
const connections = new ServerConnections(JSON.parse(process.argv[1]), process.env);
const say = (error) => error.code ?? error.reason ?? error.message;
const call = async (text) => {
  const url = new URL(text);
  return await request(url, connections.requestOptions(url)).then((answer) => answer.body.text(), say);
};
const open = async (text) => {
  const url = new URL(text);
  const socket = new WebSocket(url, connections.socketOptions(url));
  const told = await new Promise((resolve) => socket.on('open', () => resolve('open')).on('error', (error) => resolve(say(error))));
  socket.terminate();
  return told;
};
const urls = process.argv.slice(2);
console.log(JSON.stringify([await call(urls[0]), await open(urls[0].replace('http', 'ws'))]));
process.exit(0);
`;

let folder: string;
let proxy: CompanyProxy;
let server: Server;
let local: PlainServer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-link-'));
  const pem = async (name: string) => await readFile(new URL(`test-only-${name}.pem`, TLS));
  server = createServer({ cert: await pem('cert'), key: await pem('key') }, (_request, response) => response.end('called'));
  local = createPlainServer((_request, response) => response.end('called'));
  new WebSocketServer({ server });
  new WebSocketServer({ server: local });
  for (const one of [server, local]) await once(one.listen(0, '127.0.0.1'), 'listening');
  proxy = await CompanyProxy.start();
  proxy.names.set(HOST, '127.0.0.1');
});
afterAll(async () => {
  await proxy.stop();
  for (const one of [server, local]) {
    one.closeAllConnections();
    one.close();
  }
  await rm(folder, { recursive: true });
});
beforeEach(async () => {
  proxy.asked.length = 0;
  proxy.refusal = undefined;
  await writeFile(join(folder, 'login'), `${PROXY_LOGIN}\n`);
});

const portOf = (one: Server | PlainServer): number => (one.address() as AddressInfo).port;
async function ask(more: Record<string, unknown> = {}, url = `https://${HOST}:${portOf(server)}/`): Promise<string[]> {
  const settings = { url: proxy.url, credential: { file: join(folder, 'login') }, noProxy: [], mode: 'address', serverLink: true, ...more };
  const args = ['--input-type=module', '--eval', PROGRAM, JSON.stringify(settings), url];
  const env = { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: fileURLToPath(new URL('test-only-cert.pem', TLS)) };
  return JSON.parse((await promisify(execFile)(process.execPath, args, { cwd: NODE_AGENT, env })).stdout);
}

describe('the server of a node, where the operator says that it is behind their proxy', () => {
  it('is reached through it, by calls and by the link, with TLS to its end', async () => {
    expect(await ask()).toEqual(['called', 'open']);
    expect(proxy.asked).toEqual([`${HOST}:${portOf(server)}`, `${HOST}:${portOf(server)}`]);
  });

  it('is not, where whoever answers cannot show its name', async () => {
    proxy.names.set('other.model.test', '127.0.0.1');
    expect(await ask({}, `https://other.model.test:${portOf(server)}/`)).toEqual(Array(2).fill('ERR_TLS_CERT_ALTNAME_INVALID'));
  });

  it.each([
    ['chain_auth_refused', 'robot:an-old-word', undefined],
    ['chain_credential_unreadable', 'no login', undefined],
    ['chain_refused', PROXY_LOGIN, '403 Forbidden'],
    ['chain_upstream_failed', PROXY_LOGIN, '502 Bad Gateway'],
  ])('is not, and that says %s', async (reason, login, refusal) => {
    await writeFile(join(folder, 'login'), login);
    proxy.refusal = refusal;
    expect(await ask()).toEqual([reason, reason]);
  });

  it.each([
    ['as long as the operator does not say so', { serverLink: false }],
    ['where it goes past the proxy', { noProxy: ['.model.test'] }],
  ])('is dialled directly %s', async (_what, more) => {
    const [call, link] = await ask(more);
    // Nobody here knows its name.
    for (const told of [call, link]) expect(['ENOTFOUND', 'EAI_AGAIN']).toContain(told);
    expect(proxy.asked).toEqual([]);
  });

  it('on this host is dialled directly, whatever the operator says', async () => {
    expect(await ask({}, `http://127.0.0.1:${portOf(local)}/`)).toEqual(['called', 'open']);
    expect(await ask({}, `http://localhost:${portOf(local)}/`)).toEqual(['called', 'open']);
    expect(proxy.asked).toEqual([]);
  });
});
