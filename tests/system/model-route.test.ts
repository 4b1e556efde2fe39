import { randomBytes } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { MissionEventBody } from '@firecrew/protocol';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { writeCredential } from './support/credential-file.ts';
import { Installation } from './support/installation.ts';
import { withoutIsolation } from './support/isolation.ts';
import { answerMessage, ModelUpstream, UPSTREAM_CA } from './support/model-upstream.ts';
import { fetchDelivery, filesAt, makeRepository } from './support/repository.ts';
import { until } from './support/until.ts';

const FILES = { 'a.txt': 'a\n' };
const BODY = JSON.stringify({ model: 'm-1', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] });
const secret = () => `sk-test-${randomBytes(24).toString('base64url')}`;
const call = (body: string, extra = '') =>
  `curl -sS --noproxy '*' -w '\\n%{http_code}\\n' ${extra} -H 'content-type: application/json' -H 'x-api-key: of-the-guest' -d '${body}' "$FIRECREW_MODEL_URL/v1/messages"`;

/** Without isolation there is no route, which has a test of its own below. */
const missing = await withoutIsolation();

describe.skipIf(missing !== '')(`a model call of an agent${missing}`, () => {
  let installation: Installation;
  let upstream: ModelUpstream;
  let credential: string;
  const credentialFile = join(tmpdir(), `fc-model-${randomBytes(6).toString('hex')}`);

  const policyFile = join(tmpdir(), `fc-model-${randomBytes(6).toString('hex')}.yaml`);

  beforeAll(async () => {
    credential = secret();
    await writeCredential(credentialFile, `${credential}\n`);
    await writeFile(policyFile, 'version: 1\npreset: open\nlearn: { setup: [], run: [learned.example] }\n');
    upstream = await ModelUpstream.start();
    installation = await Installation.start({
      bubblewrap: 'auto',
      server: { policyFile },
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
    await rm(policyFile);
  });
  beforeEach(() => {
    upstream.requests.length = 0;
  });
  afterEach(() => {
    upstream.answer = answerMessage;
  });

  async function run(agent: string, check?: string) {
    const repository = await makeRepository(join(installation.home, 'scratch', randomBytes(6).toString('hex')), FILES);
    const { id } = await installation.startMission({ repository, agent, ...(check === undefined ? {} : { check }) });
    const view = await installation.ended(id);
    return { id, repository, view, events: await installation.events(id), log: (await installation.log(id, 1)).toString() };
  }

  it('reaches the one upstream with the credential of the host alone, whole and as events, and is written down', async () => {
    const stream = JSON.stringify({ ...JSON.parse(BODY), stream: true });
    const { id, repository, view, events, log } = await run(
      `${call(BODY)}; ${call(stream, '-N')} > out.txt; env | grep -c ${'FIRECREW_MODEL_URL'}`,
    );
    expect(view.end.missionState).toBe('completed');
    expect(log).toMatch(/"text":"hello"/);
    const delivered = await fetchDelivery(installation.client, id, repository, join(repository, '.git', 'delivery.pack'));
    expect((await filesAt(repository, delivered.commit))['out.txt']).toMatch(
      /event: message_start\ndata: .*\n\nevent: content_block_delta[\s\S]*event: message_stop[\s\S]*\n200\n$/,
    );
    expect(upstream.requests).toHaveLength(2);
    for (const { headers, rawHeaders } of upstream.requests) {
      expect(headers['x-api-key']).toBe(credential);
      expect(rawHeaders.filter((name) => /^(?:x-api-key|authorization)$/i.test(name))).toHaveLength(1);
      expect(rawHeaders.join('\n')).not.toContain('of-the-guest');
    }
    const record = (await installation.client.artifacts(id)).find(({ name }) => name === 'record.json');
    if (record === undefined) throw new Error('there is no record');
    const file = join(installation.home, 'scratch', 'record.json');
    await installation.client.downloadArtifact(id, record, file);
    expect(JSON.parse(await readFile(file, 'utf8')).model).toEqual({
      format: 'anthropic_messages',
      calls: 2,
      unreadCalls: 0,
      refused: 0,
      usage: { input: 40, cacheRead: 0, cacheWrite: 0, output: 10 },
      chargedTokens: 50,
      chargedMicros: 0,
      isBudgetReached: false,
    });
    expect(callsOf(events)).toMatchObject([
      { event: 'open', call: 1, path: '/v1/messages', model: 'm-1' },
      { event: 'end', call: 1, status: 200, usage: { input: 20, output: 5 }, chargedTokens: 25 },
      { event: 'open', call: 2 },
      { event: 'end', call: 2, status: 200, usage: { input: 20, output: 5 }, chargedTokens: 25 },
    ]);
  });

  it('beyond the budget gets a readable refusal, and ends the turn as budget_exceeded with what the agent made', async () => {
    upstream.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ type: 'message', usage: { input_tokens: 10_000, output_tokens: 20 } }));
    };
    const { view, events, log } = await run(`echo work > work.txt; for n in 1 2 3 4 5; do ${call(BODY)}; done; sleep 1000`, 'true');
    expect(view.end).toMatchObject({ missionState: 'failed', outcome: { kind: 'budget_exceeded' }, exitCode: 1 });
    expect(log).toMatch(
      /"type":"permission_error","message":"Firecrew refused this model call: the budget of this turn is reached, and the turn ends: .*\(budget_reached\)","code":"budget_reached"/,
    );
    expect(upstream.requests).toHaveLength(2);
    expect(view.phases[0]?.attempts).toHaveLength(1);
    expect(callsOf(events).filter(({ event }) => event === 'refused')[0]).toMatchObject({
      reason: 'budget_reached',
      status: 403,
      model: 'm-1',
    });
    expect(events).toContainEqual(expect.objectContaining({ kind: 'delivery' }));
  });

  it('uses a credential that was changed, while one under way ends with the one it had', async () => {
    const newer = secret();
    let answerFirst = (): void => undefined;
    upstream.answer = (request, response) => {
      if (upstream.requests.length > 1) answerMessage(request, response);
      else answerFirst = () => answerMessage(request, response);
    };
    const repository = await makeRepository(join(installation.home, 'scratch', randomBytes(6).toString('hex')), FILES);
    const agent = `{ ${call(BODY)}; } > first.txt & until is_open enough; do ${call(BODY)} >/dev/null; done; wait; tail -n 1 first.txt`;
    const { id } = await installation.startMission({ repository, agent });
    await until('two requests', () => upstream.requests.length > 1);
    await writeCredential(credentialFile, newer);
    await until('the newer credential', () => upstream.requests.some(({ headers }) => headers['x-api-key'] === newer));
    answerFirst();
    installation.witness.open('enough');
    expect((await installation.ended(id)).end.missionState).toBe('completed');
    expect((await installation.log(id, 1)).toString()).toMatch(/^200$/m);
    const used = upstream.requests.map(({ headers }) => headers['x-api-key']);
    // Once the newer one is used, the older one never is again.
    expect(used.slice(used.indexOf(newer)).every((value) => value === newer)).toBe(true);
    expect(used[0]).toBe(credential);
  });

  it('beyond the budget ends the turn as budget_exceeded also when the agent ends by itself at once', async () => {
    upstream.answer = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ type: 'message', usage: { input_tokens: 20_000, output_tokens: 20 } }));
    };
    const { view } = await run(`echo work > work.txt; ${call(BODY)}; ${call(BODY)}`);
    expect(view.end).toMatchObject({ missionState: 'failed', outcome: { kind: 'budget_exceeded' } });
  });

  it('of a learning run finds no route, unless credentials were asked for', async () => {
    const repository = await makeRepository(join(installation.home, 'scratch', randomBytes(6).toString('hex')), FILES);
    const agent = `echo x > x.txt; echo "url=\${FIRECREW_MODEL_URL:-none}"; ${call(BODY)} || true`;
    const without = await installation.startMission({ repository, agent, extra: { learn: {} } });
    await installation.ended(without.id);
    expect([(await installation.log(without.id, 1)).toString(), upstream.requests]).toEqual([expect.stringMatching(/url=none/), []]);
    const having = await installation.startMission({ repository, agent, extra: { learn: { withCredentials: true } } });
    await installation.ended(having.id);
    expect((await installation.log(having.id, 1)).toString()).toMatch(/^200$/m);
    expect(upstream.requests).toHaveLength(1);
  });

  it("of the set-up or the check is not served: the route is the agent's", async () => {
    const repository = await makeRepository(join(installation.home, 'scratch', randomBytes(6).toString('hex')), FILES);
    const { id } = await installation.startMission({ repository, agent: 'echo b > b.txt', check: `${call(BODY)} | grep -q route_closed` });
    expect((await installation.ended(id)).end).toMatchObject({ missionState: 'completed', delivery: { verified: true } });
    expect(upstream.requests).toEqual([]);
  });
});

function callsOf(events: readonly MissionEventBody[]) {
  return events.flatMap((event) =>
    event.kind === 'turn.event' && event.body.kind === 'notice' && event.body.call !== undefined ? [event.body.call] : [],
  );
}

describe('without isolation', () => {
  it('there is no route: the guest could read the memory of the process that holds the credential', async () => {
    const upstream = await ModelUpstream.start();
    const credentialFile = join(tmpdir(), `fc-model-${randomBytes(6).toString('hex')}`);
    await writeCredential(credentialFile, secret());
    const route = { format: 'anthropic_messages', upstream: upstream.url, caFile: UPSTREAM_CA, credential: { file: credentialFile } };
    const installation = await Installation.start({ bubblewrap: 'off', node: { modelRoutes: { command: route } } });
    try {
      const repository = await makeRepository(join(installation.home, 'scratch', 'r'), FILES);
      const { id } = await installation.startMission({ repository, agent: 'echo "url=$FIRECREW_MODEL_URL=" > b.txt; cat b.txt' });
      await installation.ended(id);
      expect((await installation.log(id, 1)).toString()).toMatch(/url==/);
      const notices = (await installation.events(id)).flatMap((event) =>
        event.kind === 'turn.event' && event.body.kind === 'notice' ? [event.body.code] : [],
      );
      expect(notices).toContain('model_route_not_offered');
    } finally {
      await installation.stop();
      await upstream.stop();
      await rm(credentialFile);
    }
  });
});
