import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { GENERATION, serverFileSchema } from '@firecrew/protocol';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestServer, type TestServer } from './support/running-server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const MISSION = { title: 'T', repository: { kind: 'none' }, phases: [{ kind: 'research', task: 'look' }], agent: { command: 'true' } };
const errorCode = (body: unknown) => (body as { error?: { code?: string } }).error?.code;

/** A request with headers that fetch does not let a caller set. */
function rawStatus(headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(new URL('/healthz', server.url), { headers }, (reply) => {
      reply.resume();
      resolve(reply.statusCode ?? 0);
    });
    request.once('error', reject);
    request.end();
  });
}

describe('who may call', () => {
  it.each(['/v1/missions', '/v1/fleet', '/v1/info', '/v1/openapi.json', '/metrics', '/v1/missions/msn_x/events'])(
    '%s needs a token',
    async (path) => {
      const reply = await server.call('GET', path, { token: null });
      expect([reply.status, errorCode(reply.body)]).toEqual([401, 'unauthorized']);
    },
  );

  it('refuses a token that is not known', async () => {
    expect((await server.call('GET', '/v1/info', { token: 'fct_nope' })).status).toBe(401);
  });

  it('answers health without a token, with the id of the home', async () => {
    expect(await server.call('GET', '/readyz', { token: null })).toMatchObject({
      status: 200,
      body: { ok: true, homeId: 'home-of-tests' },
    });
  });

  it.each([
    ['a rebound name', { host: 'evil.example' }, 403],
    ['a name that ends in an address', { host: '127.0.0.1.evil.example' }, 403],
    ['a page of another origin', { host: '127.0.0.1', origin: 'https://evil.example' }, 403],
    ['an opaque origin', { host: '127.0.0.1', origin: 'null' }, 403],
    ['its own origin', { host: 'localhost:1', origin: 'http://localhost:1' }, 200],
    ['an address', { host: '127.0.0.1:80' }, 200],
    ['an address of version 6', { host: '[::1]:80' }, 200],
  ])('a request by %s is answered with %s', async (_name, headers, status) => {
    expect(await rawStatus(headers as Record<string, string>)).toBe(status);
  });

  it('hides the missions of another workspace', async () => {
    const created = await server.call('POST', '/v1/missions', { json: MISSION });
    const { id } = created.body as { id: string };
    const other = await server.addCaller('operator', false);
    for (const [method, path] of [
      ['GET', `/v1/missions/${id}`],
      ['GET', `/v1/missions/${id}/events`],
      ['GET', `/v1/missions/${id}/logs`],
      ['GET', `/v1/missions/${id}/artifacts`],
      ['GET', `/v1/missions/${id}/pack`],
      ['POST', `/v1/missions/${id}/cancel`],
      ['POST', `/v1/missions/${id}/approve`],
    ] as const) {
      const reply = await server.call(method, path, { token: other });
      expect([path, reply.status, errorCode(reply.body)]).toEqual([path, 404, 'mission_not_found']);
    }
    expect((await server.call('GET', '/v1/missions', { token: other })).body).toEqual({ missions: [] });
    await server.call('POST', `/v1/missions/${id}/cancel`);
  });
});

describe('a mission that cannot be', () => {
  it.each([
    ['an unknown key', { ...MISSION, priority: 1 }, 400, 'bad_request'],
    ['a blank task', { ...MISSION, phases: [{ kind: 'coding', task: '  ' }] }, 400, 'bad_request'],
    ['an unknown kind', { ...MISSION, phases: [{ kind: 'review', task: 'x' }] }, 400, 'bad_request'],
    ['no phase', { ...MISSION, phases: [] }, 400, 'bad_request'],
    ['an over-broad allow-list', { ...MISSION, egress: { allow: ['.com'] } }, 400, 'allow_list_invalid'],
    ['an unknown backend', { ...MISSION, agent: { command: 'true', backend: 'nope' } }, 400, 'backend_unknown'],
    [
      'an agent file that was not uploaded',
      { ...MISSION, agent: { command: 'true', files: [{ name: 'a', digest: 'a'.repeat(64), bytes: 1 }] } },
      404,
      'blob_not_found',
    ],
    ["a gate inside the agent's VM", { ...MISSION, gate: { mode: 'same-vm' } }, 400, 'bad_request'],
    [
      'a repository URL without TLS',
      { ...MISSION, repository: { kind: 'url', url: 'http://code.example/x.git', branch: null, push: false } },
      400,
      'repository_url_refused',
    ],
    [
      'a path of the server',
      { ...MISSION, repository: { kind: 'url', url: '/etc', branch: null, push: false } },
      400,
      'repository_url_refused',
    ],
  ])('%s is refused with its code', async (_name, json, status, code) => {
    const reply = await server.call('POST', '/v1/missions', { json });
    expect([reply.status, errorCode(reply.body)]).toEqual([status, code]);
  });

  it('is refused where a caller who is no operator names addresses', async () => {
    const member = await server.addCaller('member', true);
    const json = { ...MISSION, egress: { addressRules: [{ host: 'intern.example', addresses: ['10.0.0.1'] }] } };
    expect(await server.call('POST', '/v1/missions', { token: member, json })).toMatchObject({ status: 403 });
  });

  it('is refused with a repository that does not hold its head', async () => {
    const upload = async (text: string) =>
      ((await server.call('POST', '/v1/uploads', { bytes: Buffer.from(text) })).body as { digest: string }).digest;
    const repository = {
      kind: 'upload',
      pack: await upload('no pack'),
      shallow: [],
      head: 'a'.repeat(40),
      branch: 'main',
      snapshot: await upload('no tree'),
      snapshotId: 'b'.repeat(64),
      dirty: false,
      author: null,
      includedSecrets: [],
    };
    const reply = await server.call('POST', '/v1/missions', { json: { ...MISSION, repository } });
    expect([reply.status, errorCode(reply.body)]).toEqual([400, 'pack_unusable']);
  });
});

describe('uploads', () => {
  it('are named by their digest, and another digest is refused', async () => {
    const bytes = Buffer.from('content');
    const digest = createHash('sha256').update(bytes).digest('hex');
    expect((await server.call('POST', '/v1/uploads', { bytes })).body).toMatchObject({ digest, bytes: 7 });
    const wrong = await server.call('POST', '/v1/uploads', { bytes, headers: { 'x-firecrew-digest': 'a'.repeat(64) } });
    expect([wrong.status, errorCode(wrong.body)]).toEqual([400, 'blob_digest_mismatch']);
  });

  it('need a token', async () => {
    expect((await server.call('POST', '/v1/uploads', { bytes: Buffer.from('x'), token: null })).status).toBe(401);
  });
});

describe('a mission without a node', () => {
  it('waits, says for what, streams its events from where a reader left, and is cancelled', async () => {
    const created = await server.call('POST', '/v1/missions', { json: MISSION });
    expect(created.status).toBe(201);
    const { id } = created.body as { id: string };
    const stream = await fetch(new URL(`/v1/missions/${id}/events`, server.url), {
      headers: { authorization: `Bearer ${server.token}`, accept: 'text/event-stream', 'last-event-id': '1' },
    });
    expect(stream.headers.get('content-type')).toContain('text/event-stream');
    expect((await server.call('POST', `/v1/missions/${id}/cancel`)).status).toBe(200);
    const text = await stream.text();
    const ids = [...text.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]));
    expect(ids).toEqual(ids.map((_, index) => index + 2));
    expect(text).toContain('"kind":"turn.ended"');
    expect(text).toContain('"kind":"mission.ended"');
    expect(text.trimEnd().endsWith('data: {}')).toBe(true);
    const again = await server.call('POST', `/v1/missions/${id}/cancel`);
    expect([again.status, errorCode(again.body)]).toEqual([409, 'mission_ended']);
    const pack = await server.call('GET', `/v1/missions/${id}/pack`);
    expect([pack.status, errorCode(pack.body)]).toEqual([404, 'nothing_delivered']);
  });
});

describe('nodes', () => {
  const publicKey = 'MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=';

  it('join once by each token', async () => {
    const { token } = (await server.call('POST', '/v1/join-tokens')).body as { token: string };
    const join = (name: string) => server.call('POST', '/v1/node/join', { token: null, json: { token, name, publicKey } });
    const replies = await Promise.all([join('one'), join('two'), join('three')]);
    expect(replies.map((reply) => reply.status).sort()).toEqual([201, 403, 403]);
    const used = await join('four');
    expect([used.status, errorCode(used.body)]).toEqual([403, 'join_token_invalid']);
  });

  it.each([-2, 2])('join within the hour of their token, with a server whose clock is %d h off, and not after it', async (hours) => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3_600_000 });
    try {
      const make = async () => (await server.call('POST', '/v1/join-tokens')).body as { token: string; expiresAt: string };
      const join = (name: string, token: string) => server.call('POST', '/v1/node/join', { token: null, json: { token, name, publicKey } });
      const [good, late] = [await make(), await make()];
      const [left] = (await server.query(`select extract(epoch from '${good.expiresAt}'::timestamptz - now())::float8 as seconds`)) as {
        seconds: number;
      }[];
      expect(left?.seconds).toSatisfy((seconds: number) => seconds > 3_500 && seconds <= 3_600);
      await server.query(`update join_tokens set expires_at = now() - interval '1 second' where expires_at = '${late.expiresAt}'`);
      expect((await join(`late${hours}`, late.token)).status).toBe(403);
      expect((await join(`good${hours}`, good.token)).status).toBe(201);
    } finally {
      vi.useRealTimers();
    }
  });

  it('keep their token when their name is taken', async () => {
    const { token } = (await server.call('POST', '/v1/join-tokens')).body as { token: string };
    const taken = await server.call('POST', '/v1/node/join', { token: null, json: { token, name: 'local', publicKey } });
    expect([taken.status, errorCode(taken.body)]).toEqual([409, 'node_name_taken']);
    expect((await server.call('POST', '/v1/node/join', { token: null, json: { token, name: 'fresh', publicKey } })).status).toBe(201);
  });

  it('do not join with a key of another kind', async () => {
    const { token } = (await server.call('POST', '/v1/join-tokens')).body as { token: string };
    expect((await server.call('POST', '/v1/node/join', { token: null, json: { token, name: 'x', publicKey: 'AAAA' } })).status).toBe(400);
  });

  it('are let in by operators alone', async () => {
    const member = await server.addCaller('member', true);
    expect((await server.call('POST', '/v1/join-tokens', { token: member })).status).toBe(403);
  });
});

describe('the server says about itself', () => {
  it('where it listens, in a file of its own', async () => {
    const file = serverFileSchema.parse(JSON.parse(await readFile(server.serverFile, 'utf8')));
    expect(file).toMatchObject({ pid: process.pid, url: server.url, homeId: 'home-of-tests', generation: GENERATION });
  });

  it('what its API is', async () => {
    const { body } = await server.call('GET', '/v1/openapi.json');
    const paths = Object.keys((body as { paths: Record<string, unknown> }).paths);
    expect(paths).toEqual(
      expect.arrayContaining(['/v1/missions', '/v1/missions/{id}', '/v1/missions/{id}/cancel', '/v1/fleet', '/v1/join-tokens']),
    );
  });

  it('how many missions are in which state, without their ids', async () => {
    const { body } = await server.call('GET', '/metrics');
    expect(body).toContain('firecrew_missions{state="cancelled"}');
    expect(body).not.toContain('msn_');
  });

  it('nothing of an inner failure', async () => {
    const reply = await server.call('GET', `/v1/missions/${'x'.repeat(65)}`);
    expect(reply.status).toBe(400);
    expect(await server.call('GET', '/nowhere')).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
  });
});
