import { describe, expect, it } from 'vitest';
import type { Frame } from '../src/frame.ts';
import { MAX_STREAMS } from '../src/limits.ts';
import type { LinkStream } from '../src/link-stream.ts';
import { ANSWER_BREACHES, breaches, dataFrame, FULL, fin, fullWindow, json, opens, PING_FLOOD, window } from '../src/testing/index.ts';
import { rawPeer } from './support/raw-peer.ts';

const open = (stream: number): Frame => ({ type: 'open', stream, payload: json({ kind: 'x' }) });
/** Answers and never reads. */
const stalled = { onStream: (stream: LinkStream) => stream.reply({}) };

describe('a breach of the format ends the session with its code', () => {
  it.each(breaches({ head: { kind: 'x' }, foreign: 2 }))('%s', async (_name, frames, code) => {
    const peer = await rawPeer(stalled);
    peer.send(...frames);
    expect(await peer.session.closed).toMatchObject({ code });
    await new Promise((resolve) => (peer.stream.closed ? resolve(null) : peer.stream.once('close', resolve)));
    expect(peer.seen.at(-1)).toEqual({ type: 'goaway', code });
  });

  it.each(ANSWER_BREACHES)('%s', async (_name, frames, code) => {
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
    let over = false;
    void peer.session.closed.then(() => {
      over = true;
    });
    while (!over) await new Promise((resolve) => peer.stream.write(PING_FLOOD, resolve));
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
    peer.send(...opens(MAX_STREAMS + 1, { kind: 'x' }));
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
