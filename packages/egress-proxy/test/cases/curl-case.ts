import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:tls';
import { makeClient, startHarness } from '../harness.ts';
import type { CaseEnd, EgressCase } from './case-format.ts';

const CERT = new URL('../tls/test-only-cert.pem', import.meta.url);
const KEY = new URL('../tls/test-only-key.pem', import.meta.url);
/** How curl is run: settings of the environment, the word, its arguments. Quotes hold one word together; there is no shell. */
const COMMAND = /^((?:[A-Za-z_]+=\S+ )+)curl ((?:"[^"]*"|\S+)(?: (?:"[^"]*"|\S+))*)$/;

/** Whether the words of a case are a command that this file runs. */
export const isCurlCase = ({ input }: EgressCase): boolean => COMMAND.test(input);

/** A TLS server that answers every request with one word. */
async function startTlsServer() {
  const server = createServer({ key: await readFile(KEY), cert: await readFile(CERT) }, (socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, stop: () => server.close() };
}

function curl(args: readonly string[], env: Record<string, string>): Promise<string | number> {
  return new Promise((resolve) => {
    execFile('curl', ['--max-time', '20', ...args], { env: { PATH: process.env.PATH ?? '', ...env } }, (error) =>
      resolve(error?.code ?? 0),
    );
  });
}

/** Runs a case whose client is curl; what the proxy decided is taken from its audit. */
export async function runCurlCase(entry: EgressCase): Promise<CaseEnd> {
  const [, settings = '', words = ''] = COMMAND.exec(entry.input) ?? [];
  if ((await curl(['--version'], {})) !== 0) return { run: false, why: 'there is no curl' };
  const tls = await startTlsServer();
  const harness = await startHarness({
    allow: entry.allowList,
    upstream: (socket) => socket.pipe(makeClient(tls.port).socket).pipe(socket),
  });
  try {
    const pairs = settings.trim().split(' ');
    const fill = (text: string) => text.replace(/\$\{PORT\}/g, String(harness.port));
    const env = Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), fill(pair.slice(pair.indexOf('=') + 1))]));
    const args = (words.match(/"[^"]*"|\S+/g) ?? []).map((word) => fill(word.replace(/^"(.*)"$/, '$1')));
    const code = await curl(['--cacert', CERT.pathname, ...args], env);
    const refused = harness.lines.find(({ verdict }) => verdict !== 'allowed');
    if (refused !== undefined) {
      if (harness.dialled.length > 0) throw new Error('a refused tunnel was dialled');
      return { run: true, ended: refused.verdict === 'denied' || refused.reason === 'plain_http' ? 'deny' : 'malformed' };
    }
    return { run: true, ended: code === 0 && harness.dialled.length === 1 ? 'allow' : `curl ended with ${code}` };
  } finally {
    await harness.stop();
    tls.stop();
  }
}
