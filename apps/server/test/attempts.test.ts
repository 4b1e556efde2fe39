import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nodeDataPaths } from '@firecrew/protocol';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { until as lookUntil } from './support/ask.ts';
import { FakeNode, keyOf, sha256 } from './support/fake-node.ts';
import { startTestServer, type TestServer } from './support/running-server.ts';
import { leaseSettings, SHORT_LEASE } from './support/short-lease.ts';
import { uploadRepository } from './support/upload-repository.ts';

const FILES = { 'a.txt': 'one\n', '.gitignore': 'dist/\n' };
const { settings, inShortLease } = leaseSettings();

let databases: TestDatabaseServer;
let server: TestServer;
let node: FakeNode;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  server = await startTestServer(settings(), databases);
});
afterEach(async () => {
  node.close();
  await server.stop();
});

interface View {
  readonly id: string;
  readonly state: string;
  readonly waiting: string | null;
  readonly phases: readonly {
    readonly delivery: Record<string, unknown> | null;
    readonly attempts: readonly { readonly attempt: number; readonly outcome: unknown; readonly detail: string }[];
  }[];
}

async function create(over: Record<string, unknown> = {}): Promise<string> {
  const json = {
    title: 'Change it',
    repository: await uploadRepository(server, FILES),
    phases: [{ kind: 'coding', task: 'x' }],
    agent: { command: 'true' },
    allowUnisolated: true,
    ...over,
  };
  const reply = await server.call('POST', '/v1/missions', { json });
  if (reply.status !== 201) throw new Error(JSON.stringify(reply.body));
  return (reply.body as View).id;
}

async function view(id: string): Promise<View> {
  return (await server.call('GET', `/v1/missions/${id}`)).body as View;
}

/** Waits until the mission is as wanted. */
const until = async (id: string, holds: (now: View) => boolean): Promise<View> => await lookUntil(() => view(id), holds);

/** The bodies of the mission's events of one kind. */
async function told(id: string, kind: string): Promise<unknown[]> {
  const rows = (await server.query('select mission_id, body from events order by seq')) as {
    mission_id: string;
    body: { kind: string };
  }[];
  return rows.filter((row) => row.mission_id === id && row.body.kind === kind).map((row) => row.body);
}

const ended = (id: string) => until(id, (now) => !['draft', 'running'].includes(now.state));

describe('the result of an attempt', () => {
  it('becomes a commit whose left-out paths are named, and artifacts that are only ever downloads', async () => {
    node = await FakeNode.connect(server);
    const id = await create();
    const start = await node.accept();
    await node.finish(start, { ...FILES, 'a.txt': 'two\n', 'dist/out.js': 'built\n' });
    const done = await ended(id);
    expect(done.state).toBe('completed');
    expect(done.phases[0]?.delivery).toMatchObject({
      state: 'delivered',
      leftOut: [{ path: 'dist/out.js', reason: 'ignored' }],
      diffstat: { files: 1 },
    });
    const { artifacts } = (await server.call('GET', `/v1/missions/${id}/artifacts`)).body as { artifacts: { id: string; name: string }[] };
    expect(artifacts.map((artifact) => artifact.name).sort()).toEqual(['changes.patch', 'diffstat.txt', 'names.txt', 'record.json']);
    for (const artifact of artifacts) {
      const { headers } = await server.call('GET', `/v1/missions/${id}/artifacts/${artifact.id}`);
      expect(headers.get('content-disposition')).toBe(`attachment; filename="${artifact.name}"`);
      expect([headers.get('x-content-type-options'), headers.get('content-security-policy')]).toEqual([
        'nosniff',
        "default-src 'none'; sandbox",
      ]);
    }
  });

  it('names what the base sends through a filter that is not run, in the delivery, its event and the record', async () => {
    node = await FakeNode.connect(server);
    const rules = { ...FILES, '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n' };
    const id = await create({ repository: await uploadRepository(server, rules) });
    await node.finish(await node.accept(), { ...rules, 'model.bin': 'WHOLE', 'b.txt': 'b\n' });
    const done = await ended(id);
    const unfiltered = [{ path: 'model.bin', filter: 'lfs' }];
    expect(done.phases[0]?.delivery).toMatchObject({ state: 'delivered', unfiltered, diffstat: { files: 2 } });
    expect(await told(id, 'delivery')).toMatchObject([{ delivery: { unfiltered } }]);
    expect(await told(id, 'mission.ended')).toMatchObject([{ end: { delivery: { unfiltered } } }]);
    const { artifacts } = (await server.call('GET', `/v1/missions/${id}/artifacts`)).body as { artifacts: { id: string; name: string }[] };
    const record = artifacts.find((artifact) => artifact.name === 'record.json');
    const { body } = await server.call('GET', `/v1/missions/${id}/artifacts/${record?.id}`);
    expect(body).toMatchObject({ delivery: { unfiltered } });
  });

  it('with nothing but ignored files is no delivery', async () => {
    node = await FakeNode.connect(server);
    const id = await create();
    await node.finish(await node.accept(), { ...FILES, 'dist/out.js': 'built\n' });
    const leftOut = [{ path: 'dist/out.js', reason: 'ignored' }];
    expect((await ended(id)).phases[0]?.delivery).toMatchObject({ state: 'nothing_to_deliver', commit: null, leftOut });
  });

  it('is rebuilt, commits of every phase included, when the folder of the repository is lost', async () => {
    node = await FakeNode.connect(server);
    const phases = [
      { kind: 'coding', task: 'first' },
      { kind: 'coding', task: 'second' },
    ];
    const id = await create({ phases });
    await node.finish(await node.accept(), { ...FILES, 'b.txt': 'b\n' });
    const second = await node.accept();
    await rm(join(dirname(dirname(server.serverFile)), 'server', 'repositories', id), { recursive: true });
    await node.finish(second, { ...FILES, 'b.txt': 'b\n', 'c.txt': 'c\n' });
    const done = await ended(id);
    expect(done.phases.map((phase) => phase.delivery?.state)).toEqual(['delivered', 'delivered']);
    expect(done.phases[1]?.delivery?.baseCommit).toBe(done.phases[0]?.delivery?.commit);
    const before = await server.call('GET', `/v1/missions/${id}/pack`);
    await rm(join(dirname(dirname(server.serverFile)), 'server', 'repositories', id), { recursive: true });
    const after = await server.call('GET', `/v1/missions/${id}/pack`);
    expect([after.status, after.headers.get('x-firecrew-commit')]).toEqual([200, before.headers.get('x-firecrew-commit')]);
  });

  it('is not taken before its tree and its events are here', async () => {
    node = await FakeNode.connect(server);
    const id = await create();
    const start = await node.accept();
    const tree = { snapshotId: 'a'.repeat(64), blobDigest: 'b'.repeat(64), bytes: 1, files: 1, round: 1, excluded: [], skipped: [] };
    void node.finish(start, FILES, { tree });
    expect(await node.next('error')).toMatchObject({ code: 'tree_missing' });
    void node.finish(start, FILES, { lastSeq: 3 });
    expect(await node.next('error')).toMatchObject({ code: 'events_missing' });
    expect((await view(id)).state).toBe('running');
  });
});

describe('a mission without a repository', () => {
  const documents = async (id: string) => {
    const { artifacts } = (await server.call('GET', `/v1/missions/${id}/artifacts`)).body as {
      artifacts: { id: string; name: string; kind: string; mime: string }[];
    };
    return artifacts.filter((artifact) => artifact.kind === 'document');
  };
  const phase = { kind: 'research', task: 'look' };
  const repository = { kind: 'none' };

  it('delivers the files that each phase left, and gives them to the next phase', async () => {
    node = await FakeNode.connect(server);
    const id = await create({ repository, phases: [phase, phase] });
    const first = await node.accept();
    await node.finish(first, { 'notes/a.md': 'one\n' });
    const second = await node.accept();
    expect(second.inputs[0]?.digest).not.toBe(first.inputs[0]?.digest);
    await node.finish(second, { 'notes/a.md': 'one\n', 'notes/b.html': '<p>two</p>\n', '.env': 'KEY=1\n' });
    const done = await ended(id);
    expect(done.state).toBe('completed');
    const found = await documents(id);
    expect(found.map(({ name, mime }) => [name, mime]).sort()).toEqual([
      ['notes/a.md', 'text/markdown'],
      ['notes/b.html', 'text/html'],
    ]);
    const page = await server.call('GET', `/v1/missions/${id}/artifacts/${found.find(({ name }) => name.endsWith('.html'))?.id}`);
    expect(page.headers.get('content-disposition')).toContain('attachment');
    expect(page.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox");
  });

  it('keeps what an agent calls like the record beside the record', async () => {
    node = await FakeNode.connect(server);
    const id = await create({ repository, phases: [phase] });
    await node.finish(await node.accept(), { 'record.json': '{"verified":true}', '.claude/settings.json': '{}', 'NO-OUTPUT.md': 'none' });
    expect((await ended(id)).state).toBe('completed');
    expect((await documents(id)).map(({ name }) => name).sort()).toEqual(['files/NO-OUTPUT.md', 'files/record.json']);
    const { artifacts } = (await server.call('GET', `/v1/missions/${id}/artifacts`)).body as { artifacts: { id: string; name: string }[] };
    const record = artifacts.find(({ name }) => name === 'record.json');
    expect((await server.call('GET', `/v1/missions/${id}/artifacts/${record?.id}`)).body).toMatchObject({ missionId: id });
    const archive = await server.call('GET', `/v1/missions/${id}/archive`);
    expect([archive.status, archive.headers.get('content-type')]).toEqual([200, 'application/x-tar']);
    const files = String(archive.body).match(/phase-1\/attempt-1\/[\w./-]+/g);
    expect(files?.sort()).toEqual(['files/NO-OUTPUT.md', 'files/record.json', 'record.json'].map((name) => `phase-1/attempt-1/${name}`));
  });

  it('says so when a phase left nothing, and fails unless that is allowed', async () => {
    node = await FakeNode.connect(server);
    const strict = await create({ repository, phases: [phase] });
    await node.finish(await node.accept(), {});
    expect((await ended(strict)).state).toBe('failed');
    expect((await documents(strict)).map(({ name }) => name)).toEqual(['NO-OUTPUT.md']);
    const lenient = await create({ repository, phases: [{ ...phase, allowEmpty: true }] });
    await node.finish(await node.accept(), {});
    expect((await ended(lenient)).state).toBe('completed');
    expect((await documents(lenient)).map(({ name }) => name)).toEqual(['NO-OUTPUT.md']);
  });
});

describe('the token of an attempt', () => {
  it('opens the inputs of that attempt and nothing else, and nothing any more when the attempt is over', async () => {
    node = await FakeNode.connect(server);
    await create();
    const start = await node.accept();
    const { turnId, attempt } = start.spec;
    const read = (digest: string, token: string, of = attempt) => server.call('GET', nodeDataPaths.blob(turnId, of, digest), { token });
    const input = start.inputs[0]?.digest ?? '';
    const secret = (await server.call('POST', '/v1/uploads', { bytes: Buffer.from('of somebody else') })).body as { digest: string };
    expect((await read(input, start.token)).status).toBe(200);
    expect((await read(secret.digest, start.token)).status).toBe(404);
    expect((await read(input, start.token, attempt + 1)).status).toBe(403);
    expect((await read(input, `${start.token}x`)).status).toBe(401);
    expect((await read(input, server.token)).status).toBe(401);
    expect((await server.call('GET', '/v1/missions', { token: start.token })).status).toBe(401);
    const digest = sha256(Buffer.from('x'));
    expect(
      (await server.call('PUT', nodeDataPaths.blob(turnId, attempt, digest), { token: start.token, bytes: Buffer.from('y') })).status,
    ).toBe(400);
    await node.finish(start, { ...FILES, 'b.txt': 'b\n' });
    expect((await read(input, start.token)).status).toBe(409);
    expect(
      (await server.call('PUT', nodeDataPaths.blob(turnId, attempt, digest), { token: start.token, bytes: Buffer.from('x') })).status,
    ).toBe(409);
    expect(
      (await server.call('POST', nodeDataPaths.log(turnId, attempt, 0), { token: start.token, bytes: Buffer.from('late') })).status,
    ).toBe(409);
  });
});

describe('a lease', () => {
  inShortLease();

  it('is kept by renewals, and ends the attempt when they stop for a whole term', async () => {
    node = await FakeNode.connect(server);
    const id = await create();
    const first = await node.accept();
    const begun = performance.now();
    for (let count = 1; performance.now() - begun < SHORT_LEASE.ttlMs * 1.5; count += 1) {
      node.send({ t: 'lease.renew', id: count, turns: [keyOf(first.spec)] });
      expect((await node.next('lease.ack')).renewed).toHaveLength(1);
      await new Promise((resolve) => setTimeout(resolve, SHORT_LEASE.renewEveryMs));
    }
    expect((await view(id)).phases[0]?.attempts).toHaveLength(1);
    const second = await node.accept();
    expect(second.spec.attempt).toBe(2);
    expect((await view(id)).phases[0]?.attempts[0]).toMatchObject({ attempt: 1, outcome: { kind: 'lost', reason: 'node_lost' } });
    node.report(first.spec, 1, { kind: 'notice', level: 'info', code: 'late', message: 'from the fenced attempt' });
    expect(await node.next('turn.cancel')).toMatchObject({ attempt: 1, reason: 'superseded' });
  });

  it('leaves the last checkpoint behind when its node is lost', async () => {
    node = await FakeNode.connect(server);
    const id = await create();
    for (const number of [1, 2]) {
      const start = await node.accept();
      expect(start.spec.attempt).toBe(number);
      const tree = await node.uploadTree(start, { ...FILES, 'half.txt': `half of ${number}\n` });
      node.report(start.spec, 1, { kind: 'checkpoint', tree });
      await node.next('events.ack');
    }
    const done = await ended(id);
    expect(done.state).toBe('failed');
    expect(done.phases[0]?.delivery).toMatchObject({ state: 'delivered', verified: false, branch: expect.stringMatching(/-wip$/) });
  });
});

describe('placement', () => {
  it('gives a slot to one of many missions that are launched together, and the next one when it is free', async () => {
    node = await FakeNode.connect(server, 1);
    const ids = await Promise.all([create(), create(), create()]);
    const first = await node.accept();
    await until(ids.find((id) => id !== first.spec.missionId) ?? '', (now) => now.waiting !== null);
    expect(node.pending('turn.start')).toBe(0);
    await node.finish(first, { ...FILES, 'b.txt': 'b\n' });
    const second = await node.accept();
    expect(second.spec.missionId).not.toBe(first.spec.missionId);
    expect(node.pending('turn.start')).toBe(0);
    await node.finish(second, { ...FILES, 'b.txt': 'b\n' });
    await node.finish(await node.accept(), { ...FILES, 'b.txt': 'b\n' });
    for (const id of ids) expect((await ended(id)).state).toBe('completed');
  });
});

describe('tokens of callers', () => {
  it('are stored as their digest alone', async () => {
    node = await FakeNode.connect(server);
    const rows = await server.query('select * from api_tokens');
    expect(JSON.stringify(rows)).not.toContain(server.token);
    expect(JSON.stringify(rows)).toContain(sha256(Buffer.from(server.token)));
  });
});
