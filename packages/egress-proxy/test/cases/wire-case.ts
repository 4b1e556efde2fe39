import assert from 'node:assert/strict';
import type { AllowEntry } from '@firecrew/egress-policy';
import type { EgressProxyLimits } from '../../src/index.ts';
import { type Client, type Harness, startHarness, statusOf, until } from '../harness.ts';
import { addressFor, allowListOf, type Delivery, type EgressCase, OWN_ADDRESSES, type Repeated } from './case-format.ts';

/** Deadlines short enough that the slow cases end; every other bound is the default. */
const SHORT: Partial<EgressProxyLimits> = { headMs: 400, helloMs: 300, dialMs: 400, dialStaggerMs: 60 };
/** What the proxy may have read of a guest that floods it. */
const FLOOD_BYTES_MAX = 2_097_152;

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

function flood(client: Client, gen: Repeated): void {
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

/** What `upstream-gets` of a case demands, as one character for each byte. */
function wantedUpstream(entry: EgressCase): string | undefined {
  const check = entry.checks?.find((text) => text.startsWith('upstream-gets:'))?.slice('upstream-gets:'.length);
  return check?.replace(/\\x([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

async function startFor(entry: EgressCase): Promise<Harness> {
  // The bytes that such a case sends are not TLS, so its names are listed for plain tunnels.
  const raw = wantedUpstream(entry) !== undefined;
  return await startHarness({
    allow: allowListOf(entry).map((host): AllowEntry => (raw ? { host, port: 443, protocol: 'tcp' } : host)),
    limits: SHORT,
    ownAddresses: OWN_ADDRESSES,
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

const upstreamBytes = (harness: Harness): Buffer => Buffer.concat(harness.arrivals.flatMap(({ chunks }) => chunks));

async function helloOutcome(harness: Harness, client: Client, entry: EgressCase): Promise<string> {
  const hello = Buffer.from(entry.firstBytesHex ?? '', 'hex');
  await send(client, hello, entry.delivery);
  const arrived = (): number => upstreamBytes(harness).length;
  await until(() => arrived() >= Math.max(hello.length, 1) || client.closed() || client.ended(), 'the verdict on the hello');
  if (arrived() === 0) return 'deny';
  assert.ok(upstreamBytes(harness).equals(hello), 'the hello arrived changed');
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
    assert.equal(client.text().match(/HTTP\/1\.1/g)?.length, 1, 'a refused connection was answered twice');
  }
  if (entry.appendGen !== undefined && status !== 200) await until(() => client.closed(), 'the end of the flood');
  const wanted = wantedUpstream(entry);
  if (status === 200 && wanted !== undefined) await until(() => upstreamBytes(harness).toString('latin1') === wanted, 'the early bytes');
  return status === 200 && entry.kind === 'sni' ? await helloOutcome(harness, client, entry) : statusOutcome(status, client.text());
}

/** What `checks` of a case demand, and that a refusal caused no look-up of a refused name and no dial. */
function assertSafe(entry: EgressCase, ended: string, harness: Harness): void {
  const refused = ['deny', 'malformed', 'timeout'].includes(ended);
  if (refused && entry.kind !== 'sni') assert.deepEqual(harness.dialled, [], 'a refused tunnel was dialled');
  if (refused && entry.kind !== 'sni' && entry.kind !== 'resolved-address')
    assert.deepEqual(harness.lookedUp, [], 'a refused name was looked up');
  const audit = JSON.stringify(harness.lines);
  for (const check of entry.checks ?? []) {
    const at = check.search(/[:=<]/);
    const [name, value] = [check.slice(0, at), check.slice(at + 1).replace(/^=/, '')];
    if (name === 'never-dials') assert.ok(![...harness.dialled, ...harness.lookedUp].includes(value), check);
    if (name === 'dns-queries') assert.ok(harness.lookedUp.length <= Number(value), check);
    if (name === 'upstream-gets-bytes') assert.equal(upstreamBytes(harness).length, Number(value), check);
    if (name === 'audit-has-no') assert.ok(!audit.includes(value), check);
    if (name === 'upstream-has-no') assert.ok(!upstreamBytes(harness).includes(value), check);
  }
  const flooded = harness.guestSides.length === 1 && entry.appendGen !== undefined;
  if (flooded) assert.ok((harness.guestSides[0]?.bytesRead ?? 0) < FLOOD_BYTES_MAX, 'the flood was read');
}

/** Runs a case through a proxy with a replaced resolver and dialler; gives how it ended, throws when that was not safe. */
export async function runWireCase(entry: EgressCase): Promise<string> {
  let harness: Harness;
  try {
    harness = await startFor(entry);
  } catch {
    return 'config-error';
  }
  try {
    let ended = '';
    for (let round = 0; round < (entry.repeat ?? 1); round += 1) ended = await runOnce(harness, entry);
    assertSafe(entry, ended, harness);
    if (ended !== 'survive') await until(() => harness.lines.length >= (entry.repeat ?? 1), 'an audit line for each verdict');
    return ended;
  } finally {
    await harness.stop();
  }
}
