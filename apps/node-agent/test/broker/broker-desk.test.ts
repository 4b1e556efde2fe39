import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BROKER_OWNER, newHandle } from '@firecrew/credential-broker';
import { CompanyProxy } from '@firecrew/egress-proxy/testing';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { BrokerDesk } from '../../src/broker/broker-desk.ts';
import { type BrokerReport, credentialDigest, type RouteOrder } from '../../src/broker/broker-messages.ts';

const SECRET = 'sk-desk-0123456789abcdef';
const IS_ROOT = process.getuid?.() === 0;
const bundle = new URL('../../../../tools/bundle-app.mjs', import.meta.url).pathname;

let home: string;
let proxy: CompanyProxy;
let program: string;
let desk: BrokerDesk;
let pids: number[];
let seen: (string | undefined)[];
let reports: BrokerReport[];
let faults: string[];
/** Status of answers of the upstream. */
let status: number;
const upstream = createServer((incoming, response) => {
  seen.push(incoming.headers['x-api-key'] as string | undefined);
  if (incoming.url === '/v1/messages?beta=wait') response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
  else response.writeHead(status).end('{}');
});

/** Asks the broker with a handle: the status, or why the connection ended. */
async function ask(handle: string, path = '/v1/messages'): Promise<number | string> {
  const headers = { 'proxy-authorization': `Handle ${handle}`, 'content-length': '2' };
  const sent = request({ socketPath: desk.socketPath, method: 'POST', path, headers, agent: false });
  sent.end('{}');
  try {
    const [message] = (await once(sent, 'response')) as [IncomingMessage];
    message.resume();
    return message.statusCode ?? 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'ended';
  }
}

/** Asks until an answer is `wanted`. */
async function eventually(handle: string, wanted: number | string): Promise<void> {
  const end = Date.now() + 20_000;
  for (;;) {
    const got = await ask(handle);
    if (got === wanted) return;
    if (Date.now() > end) throw new Error(`answers ${got} and not ${wanted}`);
  }
}

async function until(condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error('did not happen');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const farMs = 1e15;
const pid = (): number => pids.at(-1) ?? 0;
const isGone = (process_: number): boolean => {
  try {
    return !process.kill(process_, 0);
  } catch {
    return true;
  }
};

beforeAll(async () => {
  proxy = await CompanyProxy.start();
  upstream.listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  home = await mkdtemp(join(tmpdir(), 'fc-desk-'));
  await chmod(home, 0o711);
  execFileSync(process.execPath, [bundle, 'node-agent', join(home, 'bundle')]);
  program = join(home, 'bundle', 'credential-broker.mjs');
  for (const path of [join(home, 'bundle'), program]) await chmod(path, 0o755);
  await writeFile(join(home, 'key'), SECRET, { mode: 0o600 });
  if (IS_ROOT) await chown(join(home, 'key'), BROKER_OWNER.uid, BROKER_OWNER.gid);
});
afterAll(async () => {
  upstream.closeAllConnections();
  upstream.close();
  await proxy.stop();
  await rm(home, { recursive: true });
});

beforeEach(async ({ onTestFinished }) => {
  pids = [];
  [seen, reports, faults, status] = [[], [], [], 200];
  const write = (line: string): void => {
    const { broker, code } = JSON.parse(line);
    if (broker !== undefined) pids.push(broker);
    if (code !== undefined) faults.push(code);
  };
  const log = pino({}, { write });
  const onReport = (report: BrokerReport) => void reports.push(report);
  desk = new BrokerDesk({ home, program: { node: process.execPath, broker: program }, isRoot: IS_ROOT, log, onReport });
  desk.setRoute('command', {
    format: 'anthropic_messages',
    features: [],
    upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    ca: null,
    header: null,
    credential: { file: join(home, 'key') },
    viaProxy: true,
  });
  // Every upstream here is on loopback: none of them is the proxy's to see.
  desk.setProxy({ url: proxy.url, mode: 'address', noProxy: [], credential: null });
  await desk.start();
  onTestFinished(async () => {
    await desk.stop();
    expect(proxy.asked).toEqual([]);
  });
});

describe('the broker of a node', () => {
  it('serves the handles that are open, with the credential that it reads itself, and no other ones', async () => {
    const [mine, other] = [desk.open('command', farMs), desk.open('command', farMs)];
    if (mine === undefined || other === undefined) throw new Error('no handle');
    await eventually(mine, 200);
    expect(await ask(other)).toBe(200);
    expect(await ask(newHandle())).toBe(503);
    desk.close(mine);
    await eventually(mine, 503);
    expect(await ask(other)).toBe(200);
    expect(seen.every((value) => value === SECRET)).toBe(true);
    expect(desk.open('elsewhere', farMs)).toBeUndefined();
  });

  it('that is killed is started again, knows its handles, and ends what was under way', async () => {
    const handle = desk.open('command', farMs) ?? '';
    await eventually(handle, 200);
    const first = pid();
    const headers = { 'proxy-authorization': `Handle ${handle}`, 'content-length': '2' };
    const sent = request({ socketPath: desk.socketPath, method: 'POST', path: '/v1/messages?beta=wait', headers, agent: false });
    sent.end('{}');
    const [stream] = (await once(sent, 'response')) as [IncomingMessage];
    await once(stream, 'data');
    const ended = new Promise((resolve) => stream.once('error', resolve));
    process.kill(first, 'SIGKILL');
    expect(await ended).toMatchObject({ code: 'ECONNRESET' });
    await eventually(handle, 200);
    expect(pid()).not.toBe(first);
  });

  it('asks the proxy of the operator for an upstream elsewhere, and not for one on this host, or where its route says so', async () => {
    const route = (viaProxy: boolean, upstream = 'https://api.model.test'): RouteOrder => ({
      format: 'anthropic_messages',
      features: [],
      upstream,
      ca: null,
      header: null,
      credential: null,
      viaProxy,
    });
    desk.setRoute('direct', route(false));
    desk.setRoute('own', route(true, 'https://127.0.0.1:1'));
    desk.setRoute('proxied', route(true));
    const [direct, proxied] = [desk.open('direct', farMs) ?? '', desk.open('proxied', farMs) ?? ''];
    await eventually(direct, 502);
    expect(await ask(desk.open('own', farMs) ?? '')).toBe(502);
    expect(proxy.asked).toEqual([]);
    expect(await ask(proxied)).toBe(502);
    expect(proxy.asked.splice(0)).toEqual(['api.model.test:443']);
  });

  it('tells once that the provider refused a credential of a login, and is told of the next one', async () => {
    const [old, next] = ['sk-of-yesterday-0123', 'sk-of-today-0123456'];
    const route = (value: string): RouteOrder => ({
      format: 'anthropic_messages',
      features: [],
      upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
      ca: null,
      header: null,
      credential: { value, isRenewable: true },
      viaProxy: true,
    });
    desk.setRoute('login', route(old));
    const handle = desk.open('login', farMs) ?? '';
    await eventually(handle, 200);
    status = 401;
    expect(await ask(handle)).toBe(401);
    await until(() => reports.length > 0);
    expect(reports).toEqual([{ t: 'credential_refused', route: 'login', digest: credentialDigest(old) }]);
    status = 200;
    desk.setRoute('login', route(next));
    expect(await ask(handle)).toBe(200);
    expect(seen.at(-1)).toBe(next);
    expect(reports).toHaveLength(1);
  });

  it.each([
    ['no JSON', 'x'],
    ['another message', '{"t":"credential","value":"x"}'],
    ['another field', `{"t":"credential_refused","route":"r","digest":"${'0'.repeat(64)}","value":"x"}`],
    ['no digest', '{"t":"credential_refused","route":"r","digest":"x"}'],
    ['what has no end', 'x'.repeat(10_000)],
  ])('that tells %s is ended, and another one is started', async (_what, line) => {
    const odd = join(home, 'odd.mjs');
    await writeFile(
      odd,
      `process.stdout.write(${JSON.stringify(line)} + ${line.length > 5_000 ? "''" : "'\\n'"}); setInterval(() => {}, 1000);`,
      { mode: 0o755 },
    );
    await desk.stop();
    const write = (text: string): void => void faults.push(JSON.parse(text).code);
    const strange = new BrokerDesk({ home, program: { node: process.execPath, broker: odd }, isRoot: IS_ROOT, log: pino({}, { write }) });
    await strange.start();
    await until(() => faults.includes('broker_ended'));
    await strange.stop();
    expect(faults.filter((code) => code !== undefined).slice(0, 2)).toEqual(['broker_report_invalid', 'broker_ended']);
  });

  it('ends by itself with its input, which is that of its node agent', async ({ onTestFinished }) => {
    const child = spawn(process.execPath, [program, join(home, 'alone.sock')], { stdio: ['pipe', 'ignore', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    for (const order of [
      { t: 'routes', proxy: null, routes: {} },
      { t: 'handles', handles: [] },
    ])
      child.stdin.write(`${JSON.stringify(order)}\n`);
    while (!existsSync(join(home, 'alone.sock'))) await new Promise((resolve) => setTimeout(resolve, 5));
    child.stdin.end();
    expect(await once(child, 'close')).toEqual([0, null]);
  });

  it('does not follow orders that it does not understand, and repeats nothing of them', async () => {
    const child = spawn(process.execPath, [program, join(home, 'alone.sock')], { stdio: ['pipe', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (part) => {
      said += String(part);
    });
    child.stdin.end(`${JSON.stringify({ t: 'routes', routes: { r: { format: 'no', credential: { value: SECRET } } } })}\n`);
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(said).toContain('broker_order_invalid');
    expect(said).not.toContain(SECRET);
  });

  it('ends with its node agent, and takes the place of the socket of one that was killed', async () => {
    const handle = desk.open('command', farMs) ?? '';
    await eventually(handle, 200);
    await desk.stop();
    expect(isGone(pid())).toBe(true);
    expect(['ENOENT', 'ECONNREFUSED']).toContain(await ask(handle));
    await desk.start();
    await eventually(handle, 200);
  });

  it('has a name in lists of processes, no core file, and nothing of a credential in arguments and environment', async () => {
    await eventually(desk.open('command', farMs) ?? '', 200);
    const read = async (name: string) => await readFile(`/proc/${pid()}/${name}`, 'latin1');
    expect(await read('cmdline')).toMatch(/^firecrew-credential-broker/);
    expect(await read('limits')).toMatch(/Max core file size +[01] +[01] +bytes/);
    expect(`${await read('cmdline')}${await read('environ')}`).not.toContain(SECRET);
  });

  it.skipIf(!IS_ROOT)('that root starts has an account of its own, and a socket that no user of an attempt can reach', async () => {
    const handle = desk.open('command', farMs) ?? '';
    await eventually(handle, 200);
    expect(await readFile(`/proc/${pid()}/status`, 'latin1')).toMatch(
      new RegExp(`Uid:\\t${BROKER_OWNER.uid}\\t${BROKER_OWNER.uid}[\\s\\S]*Gid:\\t${BROKER_OWNER.gid}\\t[\\s\\S]*Groups:\\t *\\n`),
    );
    expect((await stat(join(home, 'broker'))).mode & 0o777).toBe(0o700);
    const script = `require('net').connect(${JSON.stringify(desk.socketPath)}).on('error', (e) => console.log(e.code)).on('connect', () => { console.log('connected'); process.exit(); })`;
    const asUser = async (uid: number) =>
      (await promisify(execFile)(process.execPath, ['-e', script], { uid, gid: uid, cwd: '/' })).stdout.trim();
    expect(await asUser(210_500)).toBe('EACCES');
    expect(await asUser(BROKER_OWNER.uid)).toBe('connected');
  });
});
