import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';

const NODE_AGENT = fileURLToPath(new URL('../..', import.meta.url));
/** What the node agent does with its server, one call and one web socket, each with its token. The web socket follows no environment by itself. */
const PROGRAM = `
import { request } from 'undici';
import WebSocket from 'ws';
import { ServerConnections } from './src/agent/server-connections.ts';
const url = new URL(process.argv[1]);
const call = await request(url, process.argv[2] === 'direct' ? new ServerConnections().requestOptions(url) : {}).then((answer) => answer.body.text(), () => 'refused');
const socket = new WebSocket(url);
const opened = await new Promise((resolve) => socket.on('open', () => resolve('open')).on('error', () => resolve('refused')));
socket.terminate();
console.log([call, opened].join(' '));
process.exit(0);
`;

let server: Server;
let proxy: Server;
let proxied = 0;
const portOf = (one: Server): number => (one.address() as AddressInfo).port;
const count = () => {
  proxied += 1;
};
beforeAll(async () => {
  server = createServer((_request, response) => response.end('called'));
  new WebSocketServer({ server });
  proxy = createServer((_request, response) => {
    count();
    response.writeHead(502).end();
  });
  proxy.on('connect', (_request, socket) => {
    count();
    socket.end('HTTP/1.1 502 Trap\r\n\r\n');
  });
  for (const one of [server, proxy]) await once(one.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  server.close();
  proxy.close();
});

async function ask(how: 'direct' | 'as it comes'): Promise<string> {
  const trap = `http://127.0.0.1:${portOf(proxy)}`;
  const env = { PATH: process.env.PATH, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: trap, HTTPS_PROXY: trap, http_proxy: trap };
  const args = ['--input-type=module', '--eval', PROGRAM, `http://127.0.0.1:${portOf(server)}/`, how];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: NODE_AGENT, env });
  return stdout.trim();
}

it('reach a server of this host directly, where the environment leads everything through a proxy', async () => {
  expect(await ask('direct')).toBe('called open');
  expect(proxied).toBe(0);
  expect(await ask('as it comes')).toBe('refused open');
  expect(proxied).toBeGreaterThan(0);
});
