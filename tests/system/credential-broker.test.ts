import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MissionEventBody } from '@firecrew/protocol';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { brokerPid } from './support/broker-process.ts';
import { writeCredential } from './support/credential-file.ts';
import { Installation } from './support/installation.ts';
import { withoutIsolation } from './support/isolation.ts';
import { answerMessage, ModelUpstream, UPSTREAM_CA } from './support/model-upstream.ts';
import { findInMemory } from './support/process-memory.ts';
import { isRunning, sendSignal } from './support/processes.ts';
import { makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const LEASE = { ttlMs: 6_000, renewEveryMs: 500 };
const BODY = JSON.stringify({ model: 'm-1', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });
const call = (options = '') =>
  `curl -sS --noproxy '*' -m 60 -w '\\n%{http_code}\\n' ${options} -H 'content-type: application/json' -d '${BODY}' "$FIRECREW_MODEL_URL/v1/messages"`;

const missing = await withoutIsolation();

describe.skipIf(missing !== '')(`the credential broker of a node${missing}`, () => {
  const credential = `sk-test-${randomBytes(24).toString('base64url')}`;
  const credentialFile = join(tmpdir(), `fc-model-${randomBytes(6).toString('hex')}`);
  let installation: Installation;
  let upstream: ModelUpstream;
  /** Calls that the upstream does not answer to their end, and whose connection is open. */
  let open: number;

  beforeAll(async () => {
    await writeCredential(credentialFile, credential);
    upstream = await ModelUpstream.start();
    installation = await Installation.start({
      bubblewrap: 'auto',
      lease: LEASE,
      node: {
        modelRoutes: {
          command: {
            format: 'anthropic_messages',
            upstream: upstream.url,
            caFile: UPSTREAM_CA,
            credential: { file: credentialFile },
            budget: { tokens: 20_000 },
            outputTokens: 100,
          },
        },
      },
    });
  });
  afterAll(async () => {
    await installation.stop();
    await upstream.stop();
    await rm(credentialFile);
  });
  beforeEach(() => {
    open = 0;
    upstream.requests.length = 0;
  });
  afterEach(() => {
    upstream.answer = answerMessage;
  });

  /** The first request gets a beginning and no end; the ones after it are answered. */
  function leaveOpen(begin: boolean): void {
    upstream.answer = (request, response) => {
      if (upstream.requests.length > 1) return answerMessage(request, response);
      open += 1;
      response.once('close', () => {
        open -= 1;
      });
      if (begin) response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n');
    };
  }

  async function start(agent: string) {
    const repository = await makeRepository(join(installation.home, 'scratch', randomBytes(6).toString('hex')), { 'a.txt': 'a\n' });
    return (await installation.startMission({ repository, agent })).id;
  }

  it('that is killed in the middle of a call ends it with a code, charged as it was held; it is started again, and the next call works', async () => {
    leaveOpen(false);
    const id = await start(`${call()}; ${call()}; echo b > b.txt`);
    await until('the first call', () => open === 1);
    const broker = await brokerPid(installation.node.pid);
    sendSignal(broker, 'SIGKILL');
    await until('the end at the upstream', () => open === 0);
    expect((await installation.ended(id)).end.missionState).toBe('completed');
    expect((await installation.log(id, 1)).toString()).toMatch(
      /the credential broker of the node ended before.*\(broker_lost\)[\s\S]*502[\s\S]*"text":"hello"[\s\S]*200/,
    );
    expect(callsOf(await installation.events(id))).toMatchObject([
      { event: 'open', call: 1 },
      { event: 'end', call: 1, reason: 'broker_lost', usage: null, chargedTokens: expect.any(Number) },
      { event: 'open', call: 2 },
      { event: 'end', call: 2, reason: 'answered', chargedTokens: 25 },
    ]);
    expect(callsOf(await installation.events(id))[1]?.chargedTokens).toBeGreaterThan(500);
    expect(await brokerPid(installation.node.pid, broker)).not.toBe(broker);
  });

  it('starts anew with its node agent: shims that go on get another handle, and call on', async () => {
    leaveOpen(true);
    const id = await start(`${call('-N')}; say cut; until is_open go; do sleep 0.2; done; ${call()}; echo b > b.txt`);
    await until('the first call', () => open === 1);
    const shim = await installation.shimPid(await installation.attempt(id));
    const [broker, before] = [await brokerPid(installation.node.pid), findInMemory(shim, /Handle ([A-Za-z0-9_-]{43})/g)];
    expect(before.size).toBe(1);
    await installation.node.end('SIGKILL');
    await until('the end of the broker', () => !isRunning(broker));
    await installation.witness.waitFor('cut');
    installation.node.start();
    await installation.ready();
    installation.witness.open('go');
    expect((await installation.ended(id)).end.missionState).toBe('completed');
    expect((await installation.log(id, 1)).toString()).toMatch(/"text":"hello"[\s\S]*200/);
    expect(upstream.requests.map(({ headers }) => headers['x-api-key'])).toEqual([credential, credential]);
  });

  it('cuts the calls of a turn whose seat is revoked at once, also where its shim does not listen', async () => {
    leaveOpen(true);
    const seat = await installation.client.linkSeat('coder', { maxTurns: 2 });
    const { keyId } = await installation.client.mintSeatKey(seat.id, 'k');
    const id = await start(call('-N'));
    await installation.query('update missions set seat_id = $1, seat_key_id = $2 where id = $3', [seat.id, keyId, id]);
    await until('the call', () => open === 1);
    const shim = await installation.shimPid(await installation.attempt(id));
    sendSignal(shim, 'SIGSTOP');
    try {
      await installation.client.revokeSeatKey(keyId);
      await until('the end at the upstream', () => open === 0);
      // Before the lease could have run out for it: the shim has not moved, and lives.
      expect(isRunning(shim)).toBe(true);
    } finally {
      sendSignal(shim, 'SIGCONT');
    }
    const { end } = await installation.ended(id);
    expect(end).toMatchObject({ missionState: 'cancelled' });
    expect(end.detail).toContain('seat_revoked: ');
    expect(upstream.requests).toHaveLength(1);
  });

  it('cuts the calls of a turn with the term of its lease on a node that is cut off, where neither node agent nor shim does', async () => {
    leaveOpen(true);
    const id = await start(call('-N'));
    await until('the call', () => open === 1);
    const shim = await installation.shimPid(await installation.attempt(id));
    for (const pid of [installation.node.pid, shim]) sendSignal(pid, 'SIGSTOP');
    try {
      await until('the end at the upstream', () => open === 0);
    } finally {
      for (const pid of [shim, installation.node.pid]) sendSignal(pid, 'SIGCONT');
    }
    await installation.client.cancel(id);
    await installation.ended(id);
  });
});

function callsOf(events: readonly MissionEventBody[]) {
  return events.flatMap((event) =>
    event.kind === 'turn.event' && event.body.kind === 'notice' && event.body.call !== undefined ? [event.body.call] : [],
  );
}
