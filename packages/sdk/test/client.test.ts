import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getGlobalDispatcher, ProxyAgent, setGlobalDispatcher } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FirecrewApiError, FirecrewClient } from '../src/index.ts';
import { json, type StandIn, startStandIn } from './stand-in-server.ts';

const MISSION = 'msn_0000000000000000';
const AT = '2030-01-01T00:00:00.000Z';
const SHA = '0123456789abcdef0123456789abcdef01234567';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

let server: StandIn;
let folder: string;
let client: FirecrewClient;
beforeEach(async () => {
  server = await startStandIn();
  folder = mkdtempSync(join(tmpdir(), 'firecrew-sdk-'));
  client = new FirecrewClient({ url: server.url, token: 'secret-token' });
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

const caught = async (work: Promise<unknown>): Promise<FirecrewApiError> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof FirecrewApiError) return error;
  throw new Error(`no FirecrewApiError but ${String(error)}`);
};

describe('a call', () => {
  it('to a server of this host goes through no proxy that the process has for others', async () => {
    server.answer = (_one, response) => json(response, 200, { version: '1', generation: 1, minGeneration: 1, homeId: 'h', epoch: 3 });
    const before = getGlobalDispatcher();
    const proxy = new ProxyAgent('http://127.0.0.1:9');
    setGlobalDispatcher(proxy);
    try {
      expect((await client.info()).homeId).toBe('h');
    } finally {
      setGlobalDispatcher(before);
      await proxy.close();
    }
  });

  it('carries the token and is read by its schema', async () => {
    server.answer = (_one, response) =>
      json(response, 200, { version: '1', generation: 1, minGeneration: 1, homeId: 'h', epoch: 3, more: 1 });
    expect(await client.info()).toEqual({ version: '1', generation: 1, minGeneration: 1, homeId: 'h', epoch: 3 });
    expect(server.received[0]?.headers.authorization).toBe('Bearer secret-token');
  });

  it('gives the code, action, id and status of a refusal, and never the token', async () => {
    server.answer = (_one, response) =>
      json(response, 409, { error: { code: 'mission_ended', message: 'it has ended', action: 'Retry it.', id: MISSION } });
    const error = await caught(client.cancel(MISSION));
    expect({ ...error, message: error.message }).toMatchObject({
      code: 'mission_ended',
      message: 'it has ended',
      action: 'Retry it.',
      id: MISSION,
      status: 409,
    });
    expect(JSON.stringify({ ...error })).not.toContain('secret-token');
  });

  it.each([
    ['an answer of another shape', 200, { odd: true }],
    ['an error that is no error of ours', 502, { odd: true }],
  ])('says bad_reply for %s', async (_what, status, body) => {
    server.answer = (_one, response) => json(response, status, body);
    expect(await caught(client.info())).toMatchObject({ code: 'bad_reply', status });
  });

  it('says unreachable where nobody answers', async () => {
    await server.close();
    expect(await caught(client.info())).toMatchObject({ code: 'unreachable', status: null });
    server = await startStandIn();
  });

  it('asks for the address before each call', async () => {
    const other = await startStandIn();
    for (const one of [server, other]) one.answer = (_one, response) => json(response, 200, { missions: [] });
    const urls = [server.url, other.url];
    const moving = new FirecrewClient({ url: () => urls.shift() ?? '', token: 't' });
    await moving.listMissions();
    await moving.listMissions({ limit: 7 });
    expect([server.received.length, other.received.map((one) => one.url)]).toEqual([1, ['/v1/missions?limit=7']]);
    await other.close();
  });

  it('gives what readyz says also while the server is not ready', async () => {
    server.answer = (_one, response) => json(response, 503, { ok: false, homeId: 'h', checks: { database: 'unreachable' } });
    expect(await client.ready()).toMatchObject({ ok: false, homeId: 'h' });
  });
});

describe('files', () => {
  it('are uploaded with their digest', async () => {
    writeFileSync(join(folder, 'a'), 'content');
    server.answer = (one, response) => json(response, 200, { digest: sha256(one.body), bytes: one.body.length });
    expect(await client.upload(join(folder, 'a'), sha256('content'))).toEqual({ digest: sha256('content'), bytes: 7 });
    expect(server.received[0]?.headers['x-firecrew-digest']).toBe(sha256('content'));
  });

  it('that are not there are refused before anything is sent', async () => {
    expect(await caught(client.upload(join(folder, 'absent')))).toMatchObject({ code: 'upload_unreadable' });
    expect(server.received).toEqual([]);
  });

  it('arrive as packs with what the server says about them', async () => {
    server.answer = (_one, response) =>
      response
        .writeHead(200, {
          'x-firecrew-commit': SHA,
          'x-firecrew-branch': 'firecrew/a',
          'x-firecrew-base': '',
          'x-firecrew-synthetic': 'true',
          'x-firecrew-awaiting-approval': 'false',
        })
        .end('PACK');
    const pack = await client.pack(MISSION, join(folder, 'pack'));
    expect(pack).toEqual({
      bytes: 4,
      digest: sha256('PACK'),
      commit: SHA,
      branch: 'firecrew/a',
      base: null,
      synthetic: true,
      awaitingApproval: false,
    });
    expect(readFileSync(join(folder, 'pack'), 'utf8')).toBe('PACK');
  });

  it('arrive all together as one archive, or not at all', async () => {
    server.answer = (one, response) => response.writeHead(one.url === `/v1/missions/${MISSION}/archive` ? 200 : 404).end('TAR');
    expect(await client.downloadArchive(MISSION, join(folder, 'all.tar'))).toEqual({ bytes: 3, digest: sha256('TAR') });
    server.answer = (_one, response) => {
      response.writeHead(200).write('half');
      setImmediate(() => response.destroy());
    };
    expect(await caught(client.downloadArchive(MISSION, join(folder, 'half.tar')))).toMatchObject({ code: 'unreachable' });
    expect(existsSync(join(folder, 'half.tar'))).toBe(false);
  });

  it('that break off leave nothing behind', async () => {
    server.answer = (_one, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half');
      setImmediate(() => response.destroy());
    };
    const artifact = { id: 'art_0000000000000000', digest: sha256('x') };
    expect(await caught(client.downloadArtifact(MISSION, artifact, join(folder, 'a')))).toMatchObject({ code: 'unreachable' });
    expect(existsSync(join(folder, 'a'))).toBe(false);
  });

  it('of another digest are told', async () => {
    server.answer = (_one, response) => response.writeHead(200).end('other');
    expect(
      await caught(client.downloadArtifact(MISSION, { id: 'art_0000000000000000', digest: sha256('x') }, join(folder, 'a'))),
    ).toMatchObject({ code: 'bad_reply' });
  });

  it('are never written over', async () => {
    writeFileSync(join(folder, 'a'), 'mine');
    server.answer = (_one, response) => response.writeHead(200).end('x');
    await expect(
      client.downloadArtifact(MISSION, { id: 'art_0000000000000000', digest: sha256('x') }, join(folder, 'a')),
    ).rejects.toMatchObject({ code: 'EEXIST' });
    expect(readFileSync(join(folder, 'a'), 'utf8')).toBe('mine');
  });
});

describe('a stream of events', () => {
  const event = (seq: number): string =>
    `id: ${seq}\nevent: mission\ndata: ${JSON.stringify({ seq, at: AT, body: { kind: 'mission.started' } })}\n\n`;
  const DONE = 'event: done\ndata: {}\n\n';

  it('goes on behind the last event after a break, an error of the server and a refused connection', async () => {
    const answers = [`${event(1)}${event(2)}`, 'error', `${event(3)}${event(4).slice(0, 20)}`, `${event(4)}${DONE}`];
    server.answer = (_one, response) => {
      const next = answers.shift() ?? DONE;
      if (next === 'error') return json(response, 503, { error: { code: 'unavailable', message: 'not yet' } });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(next);
      if (next.includes('done')) response.end();
      else setImmediate(() => response.destroy());
    };
    const seen: number[] = [];
    const codes: string[] = [];
    for await (const one of client.events(MISSION, { onReconnect: (error) => codes.push(error.code) })) seen.push(one.seq);
    expect(seen).toEqual([1, 2, 3, 4]);
    expect(server.received.map((one) => one.headers['last-event-id'])).toEqual([undefined, '2', '2', '3']);
    expect(codes).toEqual(['unreachable', 'unavailable', 'unreachable']);
  });

  it('begins behind `after`', async () => {
    server.answer = (_one, response) => response.writeHead(200).end(DONE);
    for await (const _one of client.events(MISSION, { after: 9 })) expect.unreachable();
    expect(server.received[0]?.headers['last-event-id']).toBe('9');
  });

  it('ends with the refusal of the server', async () => {
    server.answer = (_one, response) => json(response, 404, { error: { code: 'mission_not_found', message: 'no' } });
    await expect(client.events(MISSION).next()).rejects.toMatchObject({ code: 'mission_not_found', status: 404 });
    expect(server.received).toHaveLength(1);
  });

  it('ends without an error when it is left', async () => {
    server.answer = (_one, response) => void response.writeHead(200).write(event(1));
    const leave = new AbortController();
    const seen: number[] = [];
    for await (const one of client.events(MISSION, { signal: leave.signal })) {
      seen.push(one.seq);
      leave.abort();
    }
    expect(seen).toEqual([1]);
  });

  it('refuses an event of another shape rather than dropping it', async () => {
    server.answer = (_one, response) => response.writeHead(200).end('id: 1\nevent: mission\ndata: {"seq":0}\n\n');
    await expect(client.events(MISSION).next()).rejects.toMatchObject({ code: 'bad_reply' });
  });
});
