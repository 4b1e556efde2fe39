import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EgressLine } from '@firecrew/protocol';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FakeNode } from '../support/fake-node.ts';
import { startTestServer, type TestServer } from '../support/running-server.ts';
import { uploadRepository } from '../support/upload-repository.ts';

const POLICY = `
version: 1
preset: named
ceiling: { setup: [.packages.example], run: [.try.example, api.example, "raw.try.example:22/tcp"] }
learn: { setup: [.packages.example], run: [.try.example, "raw.try.example:22/tcp"] }
missions: { run: [api.example] }
`;

interface View {
  readonly id: string;
  readonly state: string;
  readonly learning?: unknown;
  readonly phases: readonly { readonly id: string; readonly delivery: Record<string, unknown> | null }[];
}

let folder: string;
let databases: TestDatabaseServer;
let server: TestServer;
let node: FakeNode;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-learning-'));
  await writeFile(join(folder, 'policy.yaml'), POLICY);
  server = await startTestServer({ policyFile: join(folder, 'policy.yaml') }, databases);
  node = await FakeNode.connect(server);
});
afterEach(async () => {
  node.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const MISSION = {
  title: 'Find out',
  repository: { kind: 'none' },
  phases: [{ kind: 'research', task: 'x', setup: 'true' }],
  agent: { command: 'true' },
  allowUnisolated: true,
};
const learning = async (over: Record<string, unknown> = {}, token?: string) =>
  await server.call('POST', '/v1/missions', { json: { ...MISSION, learn: {}, ...over }, ...(token === undefined ? {} : { token }) });
async function acceptOf(id: string) {
  for (;;) {
    const start = await node.accept();
    if (start.spec.missionId === id) return start;
  }
}
const line = (over: Partial<EgressLine>): EgressLine => ({
  event: 'end',
  connection: 1,
  purpose: 'agent',
  host: 'a.try.example',
  port: 443,
  address: '203.0.113.7',
  verdict: 'allowed',
  reason: 'guest_closed',
  rule: '.try.example',
  bytesIn: 1,
  bytesOut: 1,
  lookupMs: null,
  connectMs: null,
  durationMs: null,
  ...over,
});

describe('a learning run', () => {
  it('has what is open to those without asking, is marked as one, and has no model route and no kept set-up', async () => {
    const { status, body } = await learning({ setupLayerFiles: ['package.json'] });
    const { id } = body as View;
    expect([status, body]).toMatchObject([201, { learning: { withCredentials: false } }]);
    const { spec } = await acceptOf(id);
    expect([spec.egress.allow, spec.setup?.allow]).toEqual([
      ['api.example', '.try.example', 'raw.try.example:22/tcp'],
      ['.packages.example'],
    ]);
    expect([spec.learning, spec.setup?.layer]).toEqual([{ modelRoute: 'closed' }, undefined]);
    const { events } = (await server.call('GET', `/v1/missions/${id}/events`)).body as { events: { body: Record<string, unknown> }[] };
    expect(events[1]?.body).toMatchObject({
      kind: 'notice',
      level: 'warning',
      code: 'learning_run',
      message: expect.stringMatching(
        /without model route: .*for setup: \.packages\.example; for run: \.try\.example, raw\.try\.example:22\/tcp/,
      ),
    });
    const { missions } = (await server.call('GET', '/v1/missions')).body as { missions: View[] };
    expect(missions.find((one) => one.id === id)?.learning).toEqual({ withCredentials: false });
    await server.call('POST', `/v1/missions/${id}/cancel`);
  });

  it('has a model route where credentials were asked for; an ordinary run says nothing of it and has nothing more', async () => {
    const { id } = (await learning({ learn: { withCredentials: true } })).body as View;
    expect((await acceptOf(id)).spec.learning).toEqual({ modelRoute: 'open' });
    const ordinary = (await server.call('POST', '/v1/missions', { json: MISSION })).body as View;
    const { spec } = await acceptOf(ordinary.id);
    expect([spec.learning, spec.egress.allow, ordinary.learning]).toEqual([undefined, ['api.example'], undefined]);
    for (const one of [id, ordinary.id]) await server.call('POST', `/v1/missions/${one}/cancel`);
  });

  it('of a seat, or with included secrets, is refused unless credentials were asked for', async () => {
    const seat = (await server.call('POST', '/v1/seats', { json: { role: 'learner' } })).body as { id: string };
    const { key } = (await server.call('POST', `/v1/seats/${seat.id}/keys`, { json: { name: 'a test' } })).body as { key: string };
    const refused = { status: 400, body: { error: { code: 'learn_with_credentials' } } };
    expect(await learning({}, key)).toMatchObject(refused);
    expect(await server.call('POST', '/v1/policy/ask', { json: { egress: {}, learn: {} }, token: key })).toMatchObject(refused);
    const repository = { ...(await uploadRepository(server, { 'a.txt': 'one\n' })), includedSecrets: ['.env'] };
    expect(await learning({ repository, phases: [{ kind: 'coding', task: 'x' }] })).toMatchObject(refused);
    const allowed = await learning({ learn: { withCredentials: true } }, key);
    expect(allowed.status).toBe(201);
    await server.call('POST', `/v1/missions/${(allowed.body as View).id}/cancel`);
  });

  it('delivers nothing further without an approval', async () => {
    const repository = await uploadRepository(server, { 'a.txt': 'one\n' });
    const { id } = (await learning({ repository, phases: [{ kind: 'coding', task: 'x' }] })).body as View;
    await node.finish(await acceptOf(id), { 'a.txt': 'two\n' });
    const view = async () => (await server.call('GET', `/v1/missions/${id}`)).body as View;
    await expect.poll(async () => (await view()).state).toBe('completed');
    const waits = { state: 'awaiting_approval', pushed: 'awaiting_approval', pushDetail: expect.stringContaining('learning run') };
    expect((await view()).phases[0]?.delivery).toMatchObject(waits);
    const { artifacts } = (await server.call('GET', `/v1/missions/${id}/artifacts`)).body as { artifacts: { id: string; name: string }[] };
    const record = artifacts.find(({ name }) => name === 'record.json');
    const { body } = await server.call('GET', `/v1/missions/${id}/artifacts/${record?.id}`);
    expect(typeof body === 'string' ? JSON.parse(body) : body).toMatchObject({ learning: { withCredentials: false } });
    expect((await server.call('POST', `/v1/missions/${id}/approve`, { json: {} })).status).toBe(200);
  });

  it('is explained with what it reached beyond the policy, what is open now, and what would allow it to ordinary missions', async () => {
    const { id } = (await learning()).body as View;
    const { spec } = await acceptOf(id);
    const lines = [
      line({ event: 'open', reason: 'listed', bytesIn: null, bytesOut: null }),
      line({}),
      line({
        connection: 2,
        event: 'open',
        host: 'raw.try.example',
        port: 22,
        rule: 'raw.try.example:22/tcp',
        bytesIn: null,
        bytesOut: null,
      }),
      line({ connection: 2, host: 'raw.try.example', port: 22, rule: 'raw.try.example:22/tcp' }),
      line({ connection: 3, host: 'api.example', rule: 'api.example' }),
      line({
        connection: 4,
        event: 'open',
        purpose: 'setup',
        host: 'npm.packages.example',
        rule: '.packages.example',
        bytesIn: null,
        bytesOut: null,
      }),
      line({ connection: 5, event: 'refused', host: 'else.example', reason: 'not_listed', rule: null, bytesIn: null, bytesOut: null }),
    ];
    for (const [at, item] of lines.entries()) node.report(spec, at + 1, { kind: 'egress', line: item });
    const explain = async () => (await server.call('GET', `/v1/missions/${id}/policy`)).body as Record<string, unknown[]>;
    await expect.poll(async () => (await explain()).refused).toHaveLength(1);
    expect(await explain()).toMatchObject({
      learning: true,
      reached: [
        { host: 'a.try.example', allowedNow: false, remedy: { by: 'both', entry: 'a.try.example' } },
        { host: 'api.example', allowedNow: true, remedy: null },
        { host: 'raw.try.example', port: 22, allowedNow: false, remedy: { by: 'both', entry: 'raw.try.example:22/tcp' } },
      ],
      open: [
        {
          host: 'npm.packages.example',
          purpose: 'setup',
          address: '203.0.113.7',
          rule: '.packages.example',
          turnId: spec.turnId,
          attempt: 1,
          connection: 4,
          since: expect.stringMatching(/^\d{4}-/),
          bytesIn: null,
        },
      ],
      totals: { tunnels: 3, refusals: 1, bytesIn: 3, bytesOut: 3 },
    });
    await server.call('POST', `/v1/missions/${id}/cancel`);
  });

  it('counts a tunnel whose attempt ended before it as reached, and no longer as open', async () => {
    const repository = await uploadRepository(server, { 'a.txt': 'one\n' });
    const { id } = (await learning({ repository, phases: [{ kind: 'coding', task: 'x' }] })).body as View;
    const start = await acceptOf(id);
    node.report(start.spec, 1, { kind: 'egress', line: line({ event: 'open', bytesIn: null, bytesOut: null }) });
    const explain = async () => (await server.call('GET', `/v1/missions/${id}/policy`)).body as Record<string, unknown[]>;
    await expect.poll(async () => (await explain()).open).toHaveLength(1);
    await server.call('POST', `/v1/missions/${id}/cancel`);
    await node.finish(start, { 'a.txt': 'two\n' });
    await expect.poll(async () => (await explain()).open).toEqual([]);
    expect((await explain()).reached).toMatchObject([{ host: 'a.try.example', connections: 1, bytesIn: 0, bytesOut: 0 }]);
  });
});

describe('a learning run that nothing bounds', () => {
  it.each([
    ['no file and no ceiling', null, /no ceiling for setup and run/],
    ['a ceiling for one part alone', 'version: 1\npreset: open\nceiling: { run: [a.example] }\n', /no ceiling for setup$/],
    ['the preset locked', 'version: 1\npreset: locked\nlearn: { run: [a.example] }\n', /leaves nothing open/],
  ])('is refused: %s', async (_what, text, message) => {
    const policyFile = join(folder, 'other.yaml');
    if (text !== null) await writeFile(policyFile, text);
    const other = await startTestServer(text === null ? {} : { policyFile }, databases);
    try {
      const reply = await other.call('POST', '/v1/missions', { json: { ...MISSION, learn: {} } });
      expect(reply).toMatchObject({ status: 400, body: { error: { code: 'learn_not_allowed', message: expect.stringMatching(message) } } });
    } finally {
      await other.stop();
    }
  });
});
