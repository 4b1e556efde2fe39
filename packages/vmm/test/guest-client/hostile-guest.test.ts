import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { dialLink, LinkListener, type LinkSession, type LinkStream } from '@firecrew/link';
import { afterEach, describe, expect, it } from 'vitest';
import { getTree, guestHealth, type OutgoingTree, outerDeadlineMs, putTree, startExec, waitExec } from '../../src/index.ts';
import { HONEST_END, LYING_RECORDS } from '../../src/testing/index.ts';

const secret = Buffer.alloc(32, 7);
const open: { server: Server; sockets: Socket[]; folder: string }[] = [];
afterEach(async () => {
  for (const { server, sockets, folder } of open.splice(0)) {
    for (const socket of sockets) socket.destroy();
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
});

/** A session to a guest that does what `serve` does. */
async function guest(serve: (stream: LinkStream, head: unknown) => void): Promise<LinkSession> {
  const folder = await mkdtemp(join(tmpdir(), 'fc-hostile-'));
  const path = join(folder, 's');
  const accepted = Promise.withResolvers<LinkSession>();
  const listener = new LinkListener({
    secret,
    generation: 1,
    onSession: accepted.resolve,
    onRefused: () => undefined,
    onStream: () => undefined,
  });
  const server = createServer((socket) => listener.accept(socket));
  server.listen(path);
  await once(server, 'listening');
  const socket = connect(path);
  open.push({ server, sockets: [socket], folder });
  await dialLink(socket, { secret, generation: 1, onStream: serve });
  return accepted.promise;
}

const NOTHING = { entries: 0, bytes: 0, digest: '' };

/** What came of a tree's archive. */
async function textOf({ archive }: OutgoingTree): Promise<string> {
  const parts: Buffer[] = [];
  if (typeof archive === 'function') await archive((part) => parts.push(Buffer.from(part)));
  return Buffer.concat(parts).toString();
}

const answer = (body: string | Buffer) => (stream: LinkStream) => {
  stream.reply({ ok: true });
  stream.end(body);
};

describe('a hostile guest', () => {
  it.each([
    { what: 'another form', head: 'yes' },
    { what: 'a number', head: 7 },
    {
      what: 'a port that is no number',
      head: { ok: true, generation: 1, proxy: { up: true, port: 'x', error: null }, model: null, execs: 0 },
    },
  ])('that answers health with $what is told apart from a healthy one', async ({ head }) => {
    const session = await guest((stream) => stream.reply(head));
    await expect(guestHealth(session)).rejects.toMatchObject({ code: 'guest_reply_invalid' });
  });

  it.each(['over', 'out'] as const)(
    'of before layers, which puts a tree that is to go %s in the usual way, is told apart',
    async (onto) => {
      const session = await guest(answer(JSON.stringify({ ok: true, entries: 1, bytes: 1 })));
      await expect(putTree(session, '/workspace', Readable.from([]), { onto })).rejects.toMatchObject({ code: 'guest_reply_invalid' });
      expect(await putTree(session, '/workspace', Readable.from([]))).toEqual({ entries: 1, bytes: 1 });
    },
  );

  it('that refuses keeps its own reason, without control characters', async () => {
    const session = await guest((stream) => stream.reply({ ok: false, code: 'no', message: 'a\u001b[2Jb' }));
    await expect(startExec(session, { id: 'a', argv: ['x'], cwd: '/', timeoutMs: 1000 })).rejects.toMatchObject({
      code: 'guest_refused',
      guestCode: 'no',
      guestMessage: 'a?[2Jb',
    });
  });

  it.each(LYING_RECORDS)('that ends an exec with $what never makes it a success', async ({ body }) => {
    const session = await guest(answer(body));
    await expect(waitExec(session, 'a', 1000)).rejects.toMatchObject({ code: 'guest_reply_invalid' });
  });

  it('that ends an exec properly is believed (negative control)', async () => {
    const session = await guest(answer(JSON.stringify({ ok: true, end: HONEST_END })));
    await expect(waitExec(session, 'a', 1000)).resolves.toEqual(HONEST_END);
  });

  it.each([
    { what: 'fewer bytes', said: { bytes: 5 } },
    { what: 'another digest', said: { sha256: 'b'.repeat(64) } },
    { what: 'fewer entries', said: { entries: 0 } },
  ])('whose trailer tells of $what gives no tree', async ({ said }) => {
    const received = { entries: 1, bytes: 4, digest: 'a'.repeat(64) };
    const honest = { ok: true, entries: 1, bytes: 4, sha256: received.digest, skipped: [], changedWhilePacking: [], excluded: [] };
    let trailer: object = honest;
    const session = await guest((stream, head) => {
      const isGet = typeof head === 'object' && head !== null && 't' in head && head.t === 'get';
      answer(isGet ? 'tree' : JSON.stringify(trailer))(stream);
    });
    const tree = await getTree(session, 'a', '/workspace');
    expect(await textOf(tree)).toBe('tree');
    await expect(tree.trailer(received)).resolves.toEqual(honest);
    trailer = { ...honest, ...said };
    await expect(tree.trailer(received)).rejects.toMatchObject({ code: 'transfer_cut' });
  });

  it('that resets a tree in the middle fails it', async () => {
    const session = await guest((stream) => {
      stream.reply({ ok: true });
      stream.write('half', () => stream.reset('aborted'));
    });
    const tree = await getTree(session, 'a', '/workspace');
    await expect(textOf(tree)).rejects.toMatchObject({ code: 'stream_reset' });
    await expect(tree.trailer(NOTHING)).rejects.toMatchObject({ code: 'stream_reset' });
  });

  it('that takes no bytes stalls a put, and not for ever', async () => {
    const session = await guest((stream) => stream.reply({ ok: true }));
    const endless = Readable.from(
      (function* () {
        for (;;) yield Buffer.alloc(65_536);
      })(),
    );
    await expect(putTree(session, '/workspace', endless, { idleMs: 200 })).rejects.toMatchObject({ code: 'transfer_stalled' });
    expect(endless.destroyed).toBe(true);
  });

  it('that says nothing more ends a follow by its own silence alone, and a get by the idle limit', async () => {
    const session = await guest((stream) => stream.reply({ ok: true }));
    const tree = await getTree(session, 'a', '/workspace', undefined, { idleMs: 200 });
    await expect(textOf(tree)).rejects.toMatchObject({ code: 'stream_reset' });
    await expect(tree.trailer(NOTHING)).rejects.toMatchObject({ code: 'transfer_stalled' });
  });
});

describe('the outer deadline', () => {
  it.each([0, 1, 30, 3600, 86_400, 604_800_000])('is above an inner one of %i ms', (inner) => {
    expect(outerDeadlineMs(inner)).toBeGreaterThan(inner);
  });

  it.each([2_147_483_647, Number.MAX_SAFE_INTEGER])('never wraps: %i ms', (inner) => {
    expect(outerDeadlineMs(inner)).toBe(2_147_483_647);
  });
});
