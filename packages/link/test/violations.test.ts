import { describe, expect, it } from 'vitest';
import type { Frame } from '../src/frame.ts';
import { MAX_FRAME_BYTES, MAX_STREAMS, STREAM_WINDOW_BYTES } from '../src/limits.ts';
import type { LinkStream } from '../src/link-stream.ts';
import { dataFrame, json, rawPeer } from './support/raw-peer.ts';

const open = (stream: number): Frame => ({ type: 'open', stream, payload: json({ kind: 'x' }) });
const fin = (stream: number): Frame => ({ type: 'fin', stream });
const window = (stream: number, credit: number): Frame => ({ type: 'window', stream, credit });
const FULL = Buffer.alloc(MAX_FRAME_BYTES);
const fullWindow = (stream: number): Uint8Array[] =>
  Array.from({ length: STREAM_WINDOW_BYTES / MAX_FRAME_BYTES }, () => dataFrame(stream, FULL));
/** Answers and never reads. */
const stalled = { onStream: (stream: LinkStream) => stream.reply({}) };

describe('a breach of the format ends the session with its code', () => {
  it.each<[string, (Frame | Uint8Array)[], string]>([
    ['an unknown frame type', [Buffer.alloc(9)], 'unknown_frame_type'],
    ['an oversized frame', [Buffer.from([3, 0, 0, 0, 1, 0, 1, 0, 1])], 'frame_too_large'],
    ['a frame of a wrong length', [Buffer.from([4, 0, 0, 0, 1, 0, 0, 0, 1, 0])], 'bad_frame_length'],
    ['OPEN with the parity of the listener', [open(2)], 'bad_stream_id'],
    ['OPEN that leaves out an id', [open(3)], 'bad_stream_id'],
    ['OPEN of the same id twice', [open(1), open(1)], 'bad_stream_id'],
    ['HEAD for a stream of its own', [open(1), { type: 'head', stream: 1, payload: json({}) }], 'bad_stream_id'],
    ['DATA for a stream never opened', [dataFrame(1, json(1))], 'stream_never_opened'],
    ['DATA for a stream the listener never opened', [dataFrame(2, json(1))], 'stream_never_opened'],
    ['HEAD for a stream never opened', [{ type: 'head', stream: 2, payload: json({}) }], 'stream_never_opened'],
    ['FIN for a stream never opened', [fin(1)], 'stream_never_opened'],
    ['RST for a stream never opened', [{ type: 'rst', stream: 5, code: 'x' }], 'stream_never_opened'],
    ['WINDOW for a stream never opened', [window(4, 1)], 'stream_never_opened'],
    ['data beyond the window', [open(1), ...fullWindow(1), dataFrame(1, Buffer.alloc(1))], 'window_exceeded'],
    ['a grant beyond the window', [open(1), window(1, 1)], 'credit_overflow'],
    ['a grant of nothing', [open(1), window(1, 0)], 'credit_overflow'],
    ['the largest grant', [open(1), window(1, 0xffff_ffff)], 'credit_overflow'],
    ['a head that is not JSON', [{ type: 'open', stream: 1, payload: Buffer.from('{') }], 'bad_head'],
    ['a head that is not UTF-8', [{ type: 'open', stream: 1, payload: Buffer.from([0x22, 0xc3, 0x22]) }], 'bad_head'],
    ['data after FIN', [open(1), fin(1), dataFrame(1, json(1))], 'data_after_fin'],
    ['FIN after FIN', [open(1), fin(1), fin(1)], 'data_after_fin'],
    ['a code that is no code', [open(1), { type: 'rst', stream: 1, code: 'No!' }], 'bad_code'],
    ['an answer to no PING', [{ type: 'pong', token: 99n }], 'unexpected_pong'],
  ])('%s', async (_name, frames, code) => {
    const peer = await rawPeer(stalled);
    peer.send(...frames);
    expect(await peer.session.closed).toMatchObject({ code });
    await new Promise((resolve) => (peer.stream.closed ? resolve(null) : peer.stream.once('close', resolve)));
    expect(peer.seen.at(-1)).toEqual({ type: 'goaway', code });
  });

  it.each<[string, (id: number) => (Frame | Uint8Array)[], string]>([
    ['bytes before the answering head', (id) => [dataFrame(id, json(1))], 'head_order'],
    ['FIN before the answering head', (id) => [fin(id)], 'head_order'],
    [
      'a second answering head',
      (id) => [
        { type: 'head', stream: id, payload: json(1) },
        { type: 'head', stream: id, payload: json(2) },
      ],
      'head_order',
    ],
    ['an answering head that is not JSON', (id) => [{ type: 'head', stream: id, payload: Buffer.from('nope') }], 'bad_head'],
  ])('%s', async (_name, frames, code) => {
    const peer = await rawPeer();
    const stream = peer.session.open({});
    const failed = new Promise((resolve) => stream.on('error', resolve));
    peer.send(...frames(stream.id ?? 0));
    expect(await peer.session.closed).toMatchObject({ code });
    expect(await failed).toMatchObject({ code: 'link_lost' });
  });

  it('a peer that asks and never reads the answers', async () => {
    const peer = await rawPeer();
    peer.stream.pause();
    peer.stream.removeAllListeners('data');
    const ping = Buffer.from([7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]);
    const flood = Buffer.concat(Array.from({ length: 10_000 }, () => ping));
    let over = false;
    void peer.session.closed.then(() => {
      over = true;
    });
    while (!over) await new Promise((resolve) => peer.stream.write(flood, resolve));
    expect(await peer.session.closed).toMatchObject({ code: 'peer_stalled' });
  });
});

describe('what is no breach', () => {
  it('exactly the window, from a peer whose reader is stalled', async () => {
    const peer = await rawPeer(stalled);
    peer.send(open(1), ...fullWindow(1), { type: 'ping', token: 5n });
    await expect.poll(() => peer.seen).toContainEqual({ type: 'pong', token: 5n });
    expect(peer.seen).toContainEqual(expect.objectContaining({ type: 'head', stream: 1 }));
    expect(peer.seen.some((frame) => frame.type === 'window')).toBe(false);
  });

  it('frames for a stream that was just reset, on either side', async () => {
    const peer = await rawPeer({ onStream: (stream) => stream.reset('not_now') });
    const late = (id: number): (Frame | Uint8Array)[] => [
      dataFrame(id, FULL),
      window(id, 7),
      fin(id),
      { type: 'rst', stream: id, code: 'x' },
    ];
    peer.send(open(1), ...late(1));
    const mine = peer.session.open({});
    const id = mine.id ?? 0;
    mine.reset('changed_mind');
    peer.send({ type: 'head', stream: id, payload: json({}) }, ...late(id), ...fullWindow(id), ...fullWindow(id), {
      type: 'ping',
      token: 5n,
    });
    await expect.poll(() => peer.seen).toContainEqual({ type: 'pong', token: 5n });
    expect(peer.seen).toContainEqual({ type: 'rst', stream: 1, code: 'not_now' });
    expect(peer.seen).toContainEqual({ type: 'rst', stream: id, code: 'changed_mind' });
  });

  it('one stream more than allowed is reset, and the session goes on', async () => {
    const peer = await rawPeer(stalled);
    for (let index = 0; index <= MAX_STREAMS; index += 1) peer.send(open(1 + 2 * index));
    peer.send({ type: 'rst', stream: 1, code: 'done' }, open(3 + 2 * MAX_STREAMS), { type: 'ping', token: 5n });
    await expect.poll(() => peer.seen).toContainEqual({ type: 'pong', token: 5n });
    const resets = peer.seen.filter((frame) => frame.type === 'rst');
    expect(resets).toEqual([{ type: 'rst', stream: 1 + 2 * MAX_STREAMS, code: 'too_many_streams' }]);
    expect(peer.session.openStreams).toBe(MAX_STREAMS);
  });

  it('a handler that throws or rejects resets its stream alone', async () => {
    const peer = await rawPeer({
      onStream: (_stream, head) => {
        if (JSON.stringify(head) === '"sync"') throw new Error('sync');
        return Promise.reject(new Error('async'));
      },
    });
    peer.send({ type: 'open', stream: 1, payload: json('sync') }, { type: 'open', stream: 3, payload: json('async') });
    await expect.poll(() => peer.seen.filter((frame) => frame.type === 'rst')).toHaveLength(2);
    expect(peer.seen).toContainEqual({ type: 'rst', stream: 1, code: 'handler_failed' });
    expect(await Promise.race([peer.session.closed, Promise.resolve('live')])).toBe('live');
  });
});
