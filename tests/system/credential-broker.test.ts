import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MissionEventBody } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { brokerPid } from './support/broker-process.ts';
import { writeCredential } from './support/credential-file.ts';
import { Installation } from './support/installation.ts';
import { withoutIsolation } from './support/isolation.ts';
import { answerMessage, ModelUpstream, UPSTREAM_CA } from './support/model-upstream.ts';
import { findInMemory } from './support/process-memory.ts';
import { isRunning, sendSignal } from './support/processes.ts';
import { makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const BODY = JSON.stringify({ model: 'm-1', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });
const call = (options = '') =>
  `curl -sS --noproxy '*' -m 60 -w '\\n%{http_code}\\n' ${options} -H 'content-type: application/json' -d '${BODY}' "$FIRECREW_MODEL_URL/v1/messages"`;

const missing = await withoutIsolation();

/** An installation with a model route, and an upstream that leaves its first call open. */
class Rig {
  readonly credential = `sk-test-${randomBytes(24).toString('base64url')}`;
  readonly #file = join(tmpdir(), `fc-model-${randomBytes(6).toString('hex')}`);
  installation!: Installation;
  upstream!: ModelUpstream;
  /** Calls that the upstream does not answer to their end, and whose connection is open. */
  open = 0;

  async start(lease: { readonly ttlMs: number; readonly renewEveryMs: number }): Promise<void> {
    await writeCredential(this.#file, this.credential);
    this.upstream = await ModelUpstream.start();
    const route = {
      format: 'anthropic_messages',
      upstream: this.upstream.url,
      caFile: UPSTREAM_CA,
      credential: { file: this.#file },
      budget: { tokens: 20_000 },
      outputTokens: 100,
    };
    this.installation = await Installation.start({ bubblewrap: 'auto', lease, node: { modelRoutes: { command: route } } });
  }

  async stop(): Promise<void> {
    await this.installation.stop();
    await this.upstream.stop();
    await rm(this.#file);
  }

  /** The first request from now on gets a beginning and no end, or nothing at all; the ones after it are answered. */
  leaveOpen(begin: boolean): void {
    this.open = 0;
    this.upstream.requests.length = 0;
    this.upstream.answer = (request, response) => {
      if (this.upstream.requests.length > 1) return answerMessage(request, response);
      this.open += 1;
      response.once('close', () => {
        this.open -= 1;
      });
      if (begin) response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n');
    };
  }

  async startTurn(agent: string): Promise<string> {
    const repository = await makeRepository(join(this.installation.home, 'scratch', randomBytes(6).toString('hex')), { 'a.txt': 'a\n' });
    return (await this.installation.startMission({ repository, agent })).id;
  }
}

describe.skipIf(missing !== '')(`the credential broker of a node${missing}`, () => {
  const rig = new Rig();
  // Longer than a test waits: what ends a call here is no lease.
  beforeAll(async () => await rig.start({ ttlMs: 120_000, renewEveryMs: 500 }));
  afterAll(async () => await rig.stop());

  it('that is killed in the middle of a call ends it with a code, charged as it was held; it is started again, and the next call works', async () => {
    rig.leaveOpen(false);
    const id = await rig.startTurn(`${call()}; ${call()}; echo b > b.txt`);
    await until('the first call', () => rig.open === 1);
    const broker = await brokerPid(rig.installation.node.pid);
    sendSignal(broker, 'SIGKILL');
    await until('the end at the upstream', () => rig.open === 0);
    expect((await rig.installation.ended(id)).end.missionState).toBe('completed');
    expect((await rig.installation.log(id, 1)).toString()).toMatch(
      /the credential broker of the node ended before.*\(broker_lost\)[\s\S]*502[\s\S]*"text":"hello"[\s\S]*200/,
    );
    expect(callsOf(await rig.installation.events(id))).toMatchObject([
      { event: 'open', call: 1 },
      { event: 'end', call: 1, reason: 'broker_lost', usage: null, chargedTokens: expect.any(Number) },
      { event: 'open', call: 2 },
      { event: 'end', call: 2, reason: 'answered', chargedTokens: 25 },
    ]);
    expect(callsOf(await rig.installation.events(id))[1]?.chargedTokens).toBeGreaterThan(500);
    expect(await brokerPid(rig.installation.node.pid, broker)).not.toBe(broker);
  });

  it('starts anew with its node agent: shims that go on get another handle, and call on', async () => {
    rig.leaveOpen(true);
    const id = await rig.startTurn(`${call('-N')}; say cut; until is_open go; do sleep 0.2; done; ${call()}; echo b > b.txt`);
    await until('the first call', () => rig.open === 1);
    const shim = await rig.installation.shimPid(await rig.installation.attempt(id));
    const [broker, before] = [await brokerPid(rig.installation.node.pid), findInMemory(shim, /Handle ([A-Za-z0-9_-]{43})/g)];
    expect(before.size).toBe(1);
    await rig.installation.node.end('SIGKILL');
    await until('the end of the broker', () => !isRunning(broker));
    await rig.installation.witness.waitFor('cut');
    rig.installation.node.start();
    await rig.installation.ready();
    rig.installation.witness.open('go');
    expect((await rig.installation.ended(id)).end.missionState).toBe('completed');
    expect((await rig.installation.log(id, 1)).toString()).toMatch(/"text":"hello"[\s\S]*200/);
    expect(rig.upstream.requests.map(({ headers }) => headers['x-api-key'])).toEqual([rig.credential, rig.credential]);
  });

  it('cuts the calls of a turn whose seat is revoked at once, also where its shim does not listen', async () => {
    rig.leaveOpen(true);
    const seat = await rig.installation.client.linkSeat('coder', { maxTurns: 2 });
    const { keyId } = await rig.installation.client.mintSeatKey(seat.id, 'k');
    const id = await rig.startTurn(call('-N'));
    await rig.installation.query('update missions set seat_id = $1, seat_key_id = $2 where id = $3', [seat.id, keyId, id]);
    await until('the call', () => rig.open === 1);
    const shim = await rig.installation.shimPid(await rig.installation.attempt(id));
    sendSignal(shim, 'SIGSTOP');
    try {
      await rig.installation.client.revokeSeatKey(keyId);
      await until('the end at the upstream', () => rig.open === 0);
      // The shim has not moved.
      expect(isRunning(shim)).toBe(true);
    } finally {
      sendSignal(shim, 'SIGCONT');
    }
    const { end } = await rig.installation.ended(id);
    expect(end).toMatchObject({ missionState: 'cancelled' });
    expect(end.detail).toContain('seat_revoked: ');
    expect(rig.upstream.requests).toHaveLength(1);
  });
});

describe.skipIf(missing !== '')(`the credential broker of a node that is cut off${missing}`, () => {
  const rig = new Rig();
  beforeAll(async () => await rig.start({ ttlMs: 6_000, renewEveryMs: 500 }));
  afterAll(async () => await rig.stop());

  it('cuts the calls of a turn with the term of its lease on a node that is cut off, where neither node agent nor shim does', async () => {
    rig.leaveOpen(true);
    const id = await rig.startTurn(call('-N'));
    await until('the call', () => rig.open === 1);
    const shim = await rig.installation.shimPid(await rig.installation.attempt(id));
    for (const pid of [rig.installation.node.pid, shim]) sendSignal(pid, 'SIGSTOP');
    try {
      await until('the end at the upstream', () => rig.open === 0);
    } finally {
      for (const pid of [shim, rig.installation.node.pid]) sendSignal(pid, 'SIGCONT');
    }
    await rig.installation.client.cancel(id);
    await rig.installation.ended(id);
  });
});

function callsOf(events: readonly MissionEventBody[]) {
  return events.flatMap((event) =>
    event.kind === 'turn.event' && event.body.kind === 'notice' && event.body.call !== undefined ? [event.body.call] : [],
  );
}
