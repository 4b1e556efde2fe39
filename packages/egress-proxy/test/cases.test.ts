import { readFileSync } from 'node:fs';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { EgressProxyLimits } from '../src/index.ts';
import { type Client, type Harness, openTunnel, startHarness, statusOf, tunnelBytes, until } from './harness.ts';

interface Delivery {
  readonly chunk?: number;
  readonly splitAt?: readonly number[];
  readonly holdOpen?: boolean;
  readonly closeAfter?: boolean;
  readonly thenAfterResponse?: string;
}

interface EgressCase {
  readonly id: string;
  readonly group: string;
  readonly kind: string;
  readonly input: string;
  readonly inputGen?: { readonly unit: string; readonly count: number };
  readonly appendGen?: { readonly unit: string; readonly count: number };
  readonly expect: string;
  readonly acceptable?: readonly string[];
  readonly allowList: readonly string[];
  readonly allowListGen?: { readonly prefix: string; readonly count: number; readonly suffix: string };
  readonly resolves?: readonly (readonly string[])[];
  readonly dns?: { readonly delayMs?: number; readonly rcode?: string };
  readonly upstream?: {
    readonly refuses?: boolean;
    readonly blackhole?: boolean | readonly string[];
    readonly connectDelayMs?: number;
    readonly unreachable?: readonly string[];
  };
  readonly connect?: string;
  readonly firstBytesHex?: string;
  readonly delivery?: Delivery;
  readonly repeat?: number;
  readonly target?: string;
  readonly checks?: readonly string[];
}

const all: readonly EgressCase[] = JSON.parse(readFileSync(new URL('../../../tests/cases/egress/cases.json', import.meta.url), 'utf8'));
const WIRE_KINDS = new Set(['hostname', 'connect-bytes', 'resolved-address', 'sni']);
const runnable = all.filter((entry) => WIRE_KINDS.has(entry.kind) && entry.target === undefined);
/** Cases of the kind `client` that have a test of their own in this file or beside it. */
const CLIENT_CASES_RUN = new Set<string>();

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  PUBLIC_V4_A: '93.184.216.34',
  PUBLIC_V4_B: '93.184.216.35',
  PUBLIC_V6_A: '2606:2800:220:1:248:1893:25c8:1946',
  HOST_LAN_ADDRESS: '93.184.216.99',
};
const addressFor = (text: string): string => PLACEHOLDERS[text] ?? text.replace(/^PUBLIC_V4_DEAD_(\d+)$/, '93.184.217.$1');

/** Deadlines short enough that the slow cases end; every other bound is the default. */
const SHORT: Partial<EgressProxyLimits> = { headMs: 400, helloMs: 300, dialMs: 400, dialAttemptMs: 60 };

function statusOutcome(status: number, text: string): string {
  if (status === 200) return 'allow';
  if (status === 403) return 'deny';
  if (status === 405) return text.includes('plain_http') ? 'deny' : 'malformed';
  if (status === 408) return 'timeout';
  if (status === 429 || status === 503) return 'busy';
  return status >= 500 ? 'upstream-error' : 'malformed';
}

function inputBytes(entry: EgressCase): Buffer {
  if (entry.kind === 'sni') return Buffer.from(`CONNECT ${entry.connect} HTTP/1.1\r\nHost: x\r\n\r\n`, 'latin1');
  if (entry.kind !== 'connect-bytes') return Buffer.from(`CONNECT ${entry.input}:443 HTTP/1.1\r\nHost: x\r\n\r\n`, 'utf8');
  const gen = entry.inputGen;
  return Buffer.from(gen === undefined ? entry.input : entry.input.replace('{GEN}', () => gen.unit.repeat(gen.count)), 'latin1');
}

function pieces(bytes: Buffer, delivery: Delivery | undefined): Buffer[] {
  if (delivery?.splitAt !== undefined) {
    const cuts = delivery.splitAt.map((cut) => (cut < 0 ? bytes.length + cut : cut));
    return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length));
  }
  const size = delivery?.chunk ?? bytes.length;
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
  return parts;
}

async function send(client: Client, bytes: Buffer, delivery: Delivery | undefined): Promise<void> {
  for (const part of pieces(bytes, delivery)) {
    client.socket.write(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function flood(client: Client, gen: { unit: string; count: number }): void {
  const block = Buffer.from(gen.unit.repeat(65_536), 'latin1');
  let left = gen.count;
  const more = (): void => {
    while (left > 0 && !client.socket.destroyed) {
      left -= block.length;
      if (!client.socket.write(block)) return;
    }
  };
  client.socket.on('drain', more);
  more();
}

async function startFor(entry: EgressCase): Promise<Harness> {
  const gen = entry.allowListGen;
  const generated = gen === undefined ? [] : Array.from({ length: gen.count }, (_, index) => `${gen.prefix}${index}${gen.suffix}`);
  const allow = [...entry.allowList, ...generated].map((text) =>
    // The bytes of this case are not TLS, so its rule says so.
    entry.id === 'ts-01' && text === 'api.example.test' ? { host: text, port: 443, protocol: 'tcp' as const } : text,
  );
  return await startHarness({
    allow,
    limits: SHORT,
    ownAddresses: ['127.0.0.1', '::1', '93.184.216.99'],
    resolve: async (_host, call) => {
      if (entry.dns?.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, entry.dns?.delayMs));
      if (entry.dns?.rcode !== undefined && entry.dns.rcode !== 'NOERROR') throw new Error(entry.dns.rcode);
      const answers = entry.resolves ?? [['PUBLIC_V4_A']];
      return (answers[Math.min(call, answers.length - 1)] ?? []).map(addressFor);
    },
    beforeDial: ({ address }) => {
      const { upstream } = entry;
      if (upstream?.refuses === true) throw new Error('ECONNREFUSED');
      if (upstream?.unreachable?.map(addressFor).includes(address) === true) throw new Error('ENETUNREACH');
      if (upstream?.blackhole !== undefined || address.startsWith('93.184.217.')) return new Promise(() => {});
      return undefined;
    },
  });
}

async function helloOutcome(harness: Harness, client: Client, entry: EgressCase): Promise<string> {
  const hello = Buffer.from(entry.firstBytesHex ?? '', 'hex');
  await send(client, hello, entry.delivery);
  const arrived = (): Buffer => Buffer.concat(harness.arrivals.flatMap(({ chunks }) => chunks));
  await until(() => arrived().length >= Math.max(hello.length, 1) || client.closed() || client.ended(), 'the verdict on the hello');
  if (arrived().length === 0) return 'deny';
  expect(arrived().equals(hello)).toBe(true);
  return 'allow';
}

async function runOnce(harness: Harness, entry: EgressCase): Promise<string> {
  const client = harness.connect();
  const bytes = inputBytes(entry);
  await send(client, bytes, entry.kind === 'sni' ? undefined : entry.delivery);
  if (entry.appendGen !== undefined) flood(client, entry.appendGen);
  const holds = entry.delivery?.holdOpen === true || entry.delivery?.thenAfterResponse !== undefined || entry.kind === 'sni';
  if (entry.delivery?.closeAfter === true) client.socket.destroy();
  else if (!holds && entry.appendGen === undefined && bytes.length === 0) client.socket.end();
  await until(() => statusOf(client) !== undefined || client.closed(), `an answer to ${entry.id}`);
  const status = statusOf(client);
  if (status === undefined) return 'survive';
  if (entry.delivery?.thenAfterResponse !== undefined) {
    client.socket.write(entry.delivery.thenAfterResponse);
    await until(() => client.closed() || client.ended(), 'the end of the refused connection');
    expect(client.text().match(/HTTP\/1\.1/g)).toHaveLength(1);
  }
  if (entry.appendGen !== undefined && status !== 200) await until(() => client.closed(), 'the end of the flood');
  if (status === 200 && entry.id === 'ts-01') {
    await until(
      () => harness.arrivals.some(({ chunks }) => Buffer.concat(chunks).toString('latin1') === '\x16\x03\x01TLSBYTES'),
      'early bytes',
    );
  }
  return status === 200 && entry.kind === 'sni' ? await helloOutcome(harness, client, entry) : statusOutcome(status, client.text());
}

async function run(entry: EgressCase): Promise<{ outcome: string; harness: Harness | undefined }> {
  let harness: Harness;
  try {
    harness = await startFor(entry);
  } catch {
    return { outcome: 'config-error', harness: undefined };
  }
  running = harness;
  let outcome = '';
  for (let round = 0; round < (entry.repeat ?? 1); round += 1) outcome = await runOnce(harness, entry);
  return { outcome, harness };
}

/** What `checks` of the file demand, and that a refusal caused no look-up of a refused name and no dial. */
function expectSafe(entry: EgressCase, outcome: string, harness: Harness): void {
  const refused = ['deny', 'malformed', 'timeout'].includes(outcome);
  if (refused && entry.kind !== 'sni') expect(harness.dialled).toEqual([]);
  if (refused && entry.kind !== 'sni' && entry.kind !== 'resolved-address') expect(harness.lookedUp).toEqual([]);
  const audit = JSON.stringify(harness.lines);
  for (const check of entry.checks ?? []) {
    const [name, value = ''] = [check.slice(0, check.search(/[:=<]/)), check.slice(check.search(/[:=<]/) + 1)];
    if (name === 'never-dials') expect([...harness.dialled, ...harness.lookedUp]).not.toContain(value);
    if (name === 'dns-queries') expect(harness.lookedUp.length).toBeLessThanOrEqual(Number(value.replace('=', '')));
    if (name === 'audit-has-no') expect(audit).not.toContain(value);
  }
  if (harness.guestSides.length === 1 && entry.appendGen !== undefined) expect(harness.guestSides[0]?.bytesRead).toBeLessThan(2_097_152);
}

const tally = { safe: 0, exact: 0 };
let running: Harness | undefined;

afterEach(async () => {
  await running?.stop();
  running = undefined;
});

describe('the published egress cases on the wire', () => {
  it.each(runnable)('$group $id: $input ends as $expect', async (entry) => {
    const { outcome, harness } = await run(entry);
    if (harness !== undefined) expectSafe(entry, outcome, harness);
    tally.safe += 1;
    if (outcome === entry.expect) tally.exact += 1;
    expect([entry.expect, ...(entry.acceptable ?? [])]).toContain(outcome);
    if (outcome === 'survive' || harness === undefined) return;
    await until(() => harness.lines.length >= (entry.repeat ?? 1), 'an audit line for each verdict');
  });
});

/** Registers a test for a case of the kind `client`, so that it counts. */
function clientCase(id: string, title: string, body: () => Promise<void>): void {
  CLIENT_CASES_RUN.add(id);
  it(`${id}: ${title}`, async () => {
    await body();
    tally.safe += 1;
    tally.exact += 1;
  });
}

const RAW = [{ host: 'api.example.test', port: 443, protocol: 'tcp' as const }];

describe('the published egress cases that are scripts of a client', () => {
  clientCase('tl-01', 'an answer of 1 MB arrives whole two seconds after the half-close', async () => {
    const answer = Buffer.alloc(1_048_576, 'a');
    running = await startHarness({ allow: RAW, upstream: (socket) => socket.on('end', () => setTimeout(() => socket.end(answer), 2000)) });
    const client = await openTunnel(running);
    client.socket.end('request');
    await until(() => client.ended(), 'the end of the answer');
    expect(tunnelBytes(client).equals(answer)).toBe(true);
    expect(running.arrivals[0]?.chunks.join('')).toBe('request');
  });

  clientCase('tl-03', 'a reset of the upstream frees both sides and leaves one end line', async () => {
    running = await startHarness({
      allow: RAW,
      upstream: (socket) => socket.on('data', () => socket.write(Buffer.alloc(100_000), () => socket.resetAndDestroy())),
    });
    const client = await openTunnel(running);
    client.socket.write('request');
    await until(() => client.ended() || client.closed(), 'the end of the tunnel');
    await until(() => running?.lines.length === 2, 'the end line');
    expect(running.lines[1]).toMatchObject({ event: 'end', reason: 'upstream_reset', closedBy: 'upstream', bytesOut: 7 });
    await until(() => running?.proxy.stats().connectionsNow === 0, 'the connection to be forgotten');
  });

  clientCase('tl-04', 'a reset right after the head harms nobody', async () => {
    running = await startHarness();
    for (let round = 0; round < 50; round += 1) {
      const { socket } = running.connect();
      socket.write('CONNECT api.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n', () => socket.resetAndDestroy());
    }
    await until(
      () => running?.proxy.stats().connections === 50 && running.proxy.stats().connectionsNow === 0,
      'all connections to be over',
    );
    await openTunnel(running);
  });

  clientCase('tl-11', 'closing ends 20 tunnels and completes the audit', async () => {
    running = await startHarness({ allow: RAW });
    const harness = running;
    await Promise.all(Array.from({ length: 20 }, () => openTunnel(harness)));
    await harness.proxy.close();
    await until(() => harness.arrivals.every(({ socket }) => socket.destroyed || socket.readableEnded), 'the upstream sockets to end');
    expect(harness.lines.filter(({ event, reason }) => event === 'end' && reason === 'proxy_closed')).toHaveLength(20);
  });

  clientCase('tl-13', '50 MB of bytes flow each way at once unchanged', async () => {
    running = await startHarness({ allow: RAW, upstream: (socket) => socket.pipe(socket) });
    const client = await openTunnel(running);
    const sent = Buffer.alloc(52_428_800);
    for (let at = 0; at < sent.length; at += 4) sent.writeUInt32LE((at * 2_654_435_761) >>> 0, at);
    client.socket.end(sent);
    await until(() => client.ended(), 'the echo', 60_000);
    expect(tunnelBytes(client).equals(sent)).toBe(true);
  });

  clientCase('ls-12', '2000 tunnels at once open or are told to come back', async () => {
    running = await startHarness({ allow: RAW });
    const harness = running;
    const clients = Array.from({ length: 2000 }, () => harness.connect());
    for (const { socket } of clients) socket.write('CONNECT api.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => clients.every((client) => statusOf(client) !== undefined || client.closed()), 'every answer', 60_000);
    const statuses = new Set(clients.map(statusOf));
    expect([...statuses].every((status) => status === 200 || status === 429 || status === 503)).toBe(true);
    expect(harness.proxy.stats().tunnelsNow).toBeLessThanOrEqual(256);
  });

  clientCase('ls-16', '64 slow look-ups use two threads and end in time', async () => {
    running = await startHarness({ limits: { lookupMs: 300 }, resolve: () => new Promise(() => {}) });
    const harness = running;
    const clients = Array.from({ length: 64 }, () => harness.connect());
    for (const [index, { socket }] of clients.entries()) socket.write(`CONNECT n${index}.pkg.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => clients.every((client) => statusOf(client) === 504), 'every 504');
    expect(harness.lookedUp).toHaveLength(2);
  });

  clientCase('au-01', 'one line for each verdict', async () => {
    running = await startHarness();
    const harness = running;
    for (const input of ['CONNECT evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n', 'CONNECT a_b@c:443 HTTP/1.1\r\nHost: x\r\n\r\n']) {
      const client = harness.connect();
      client.socket.write(input);
      await until(() => client.ended(), 'the refusal');
    }
    await openTunnel(harness);
    expect(harness.lines.map(({ connection, verdict, reason, host, port }) => ({ connection, verdict, reason, host, port }))).toEqual([
      { connection: 1, verdict: 'denied', reason: 'not_listed', host: 'evil.test', port: 443 },
      { connection: 2, verdict: 'malformed', reason: 'bad_character', host: undefined, port: 443 },
      { connection: 3, verdict: 'allowed', reason: 'listed', host: 'api.example.test', port: 443 },
    ]);
    expect(harness.lines.every(({ ids, at }) => ids.vm === 'vm_test' && !Number.isNaN(Date.parse(at)))).toBe(true);
  });

  clientCase('au-04', 'the closing line gives bytes each way, time and who closed', async () => {
    const down = Buffer.alloc(3_145_728, 'd');
    running = await startHarness({ allow: RAW, upstream: (socket) => socket.on('end', () => socket.end(down)) });
    const client = await openTunnel(running);
    client.socket.end(Buffer.alloc(1_048_576, 'u'));
    await until(() => running?.lines.length === 2, 'the closing line');
    expect(running.lines[1]).toMatchObject({
      event: 'end',
      bytesIn: 3_145_728,
      bytesOut: 1_048_576,
      closedBy: 'guest',
      reason: 'guest_closed',
    });
    expect(running.lines[1]?.durationMs).toBeGreaterThanOrEqual(0);
  });

  clientCase('au-05', 'the reason stands in the status line, in a header and in the body', async () => {
    running = await startHarness();
    const client = running.connect();
    client.socket.write('CONNECT evil.test:443 HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => client.ended(), 'the refusal');
    expect(client.text()).toMatch(/^HTTP\/1\.1 403 Forbidden \(not_listed\)\r\nx-firecrew-reason: not_listed\r\n/);
    expect(client.text()).toMatch(/evil\.test:443 denied \(not_listed\)/);
  });

  clientCase('au-07', 'without a line there is no tunnel', async () => {
    running = await startHarness({ audit: () => Promise.reject(new Error('ENOSPC')) });
    const client = running.connect();
    client.socket.write('CONNECT api.example.test:443 HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(() => client.ended(), 'the refusal');
    expect(client.text()).toMatch(/^HTTP\/1\.1 503 .*\(audit_unavailable\)/);
    expect(running.dialled).toEqual([]);
  });
});

afterAll(() => {
  const count = runnable.length + CLIENT_CASES_RUN.size;
  const curl = all.filter(({ id }) => /^cl-0[1-6]$|^cl-08$/.test(id)).length;
  console.log(
    `egress cases on the wire: ${count} run, safe ${tally.safe}, exact ${tally.exact}, not run ${all.length - count - curl}, with curl in tls.test.ts ${curl}`,
  );
});
