import { type LogChunk, nodeDataPaths } from '@firecrew/protocol';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FakeNode, keyOf } from './support/fake-node.ts';
import { startTestServer, type TestServer } from './support/running-server.ts';
import { uploadRepository } from './support/upload-repository.ts';

const FILES = { 'a.txt': 'one\n' };
/** Pieces beyond one page of a follower. */
const MANY = 150;

let databases: TestDatabaseServer;
let server: TestServer;
let node: FakeNode;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  server = await startTestServer({}, databases);
  node = await FakeNode.connect(server);
});
afterEach(async () => {
  node.close();
  await server.stop();
});

type Start = Awaited<ReturnType<FakeNode['accept']>>;

async function createMission(): Promise<string> {
  const reply = await server.call('POST', '/v1/missions', {
    json: {
      title: 'Change it',
      repository: await uploadRepository(server, FILES),
      phases: [{ kind: 'coding', task: 'x' }],
      agent: { command: 'true' },
      allowUnisolated: true,
    },
  });
  return (reply.body as { id: string }).id;
}

/** A writer of one attempt's log. */
function logOf(start: Start): (text: string) => Promise<void> {
  let offset = 0;
  return async (text) => {
    const bytes = Buffer.from(text);
    const path = nodeDataPaths.log(start.spec.turnId, start.spec.attempt, offset);
    offset += bytes.length;
    expect((await server.call('POST', path, { token: start.token, bytes })).body).toEqual({ length: offset });
  };
}

const textOf = (chunk: LogChunk) => Buffer.from(chunk.data, 'base64').toString();

interface Piece {
  readonly text: string;
  /** Where the follower is behind it. */
  readonly cursor: string;
}

/** Follows the log after a cursor until the stream ends; `onPiece` is told of each piece as it comes. */
async function follow(id: string, after?: string, onPiece?: (piece: Piece) => void): Promise<Piece[]> {
  const headers = { authorization: `Bearer ${server.token}`, accept: 'text/event-stream' };
  const reply = await fetch(`${server.url}/v1/missions/${id}/logs`, {
    headers: { ...headers, ...(after === undefined ? {} : { 'last-event-id': after }) },
  });
  const pieces: Piece[] = [];
  let held = '';
  for await (const part of reply.body ?? []) {
    const events = (held + Buffer.from(part).toString()).split('\n\n');
    held = events.pop() ?? '';
    for (const event of events) {
      const field = (name: string) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(event)?.[1] ?? '';
      if (field('event') !== 'log') continue;
      const piece = { text: textOf(JSON.parse(field('data'))), cursor: field('id') };
      pieces.push(piece);
      onPiece?.(piece);
    }
  }
  return pieces;
}

describe('the log of a mission', () => {
  it('is followed piece by piece over all its attempts, and goes on behind any piece', async () => {
    const id = await createMission();
    const first = await node.accept();
    const write = logOf(first);
    for (const text of ['a', 'b', 'c']) await write(text);
    node.send({ t: 'turn.lost', ...keyOf(first.spec), reason: 'shim_died', detail: 'gone', tree: null });
    const second = await node.accept();
    const writeOn = logOf(second);
    for (const text of ['d', 'e']) await writeOn(text);
    await node.finish(second, { ...FILES, 'b.txt': 'b\n' }, { logBytes: 2 });
    const all = await follow(id);
    expect(all.map(({ text }) => text)).toEqual(['a', 'b', 'c', 'd', 'e']);
    for (const [index, { cursor }] of all.entries())
      expect((await follow(id, cursor)).map(({ text }) => text)).toEqual(['a', 'b', 'c', 'd', 'e'].slice(index + 1));
  });

  it('reaches a follower that waits, more than a page of it too, and ends with the mission', async () => {
    const id = await createMission();
    const start = await node.accept();
    const write = logOf(start);
    const got: string[] = [];
    const following = follow(id, undefined, ({ text }) => got.push(text));
    await write('first\n');
    await expect.poll(() => got).toEqual(['first\n']);
    for (let index = 0; index < MANY; index += 1) await write(`${index} `);
    const rest = Array.from({ length: MANY }, (_, index) => `${index} `);
    await expect.poll(() => got.slice(1)).toEqual(rest);
    await node.finish(start, { ...FILES, 'b.txt': 'b\n' }, { logBytes: 6 + rest.join('').length });
    await following;
  });

  it('as a list holds every piece, over pages and attempts', async () => {
    const id = await createMission();
    const start = await node.accept();
    const write = logOf(start);
    for (let index = 0; index < MANY; index += 1) await write('x');
    const { chunks } = (await server.call('GET', `/v1/missions/${id}/logs`)).body as { chunks: LogChunk[] };
    expect(chunks.map((chunk) => chunk.offset)).toEqual(Array.from({ length: MANY }, (_, index) => index));
  });
});
