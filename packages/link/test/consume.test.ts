import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STREAM_WINDOW_BYTES } from '../src/limits.ts';
import type { LinkStream } from '../src/link-stream.ts';
import { dataFrame, json } from '../src/testing/index.ts';
import { memoryPair } from './support/memory-stream.ts';
import { joinSessions, openSocketYard, type SocketYard } from './support/pair.ts';
import { rawPeer } from './support/raw-peer.ts';

let yard: SocketYard;
beforeAll(async () => {
  yard = await openSocketYard();
});
afterAll(() => yard.close());

/** Bytes that tell their own place. */
function pattern(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let at = 0; at < length; at += 1) bytes[at] = (at * 31 + seed + (at >> 8)) & 0xff;
  return bytes;
}

/** Opens a stream from the guest; gives both ends. */
async function openStream(pair: Parameters<typeof joinSessions>[0]): Promise<[guest: LinkStream, host: LinkStream]> {
  const accepted = Promise.withResolvers<LinkStream>();
  const { guest } = await joinSessions(pair, {}, { onStream: accepted.resolve });
  const mine = guest.open({});
  const theirs = await accepted.promise;
  theirs.reply({});
  return [mine, theirs];
}

describe('a stream that is consumed', () => {
  it('hands on every byte in order, also those that had come before, and settles at the end', async () => {
    const [mine, theirs] = await openStream(await yard.pair());
    const sent = pattern(3 * STREAM_WINDOW_BYTES + 7, 1);
    mine.end(sent);
    await expect.poll(() => theirs.readableLength).toBe(0);
    const got: Buffer[] = [];
    await theirs.consume((piece) => got.push(Buffer.from(piece)));
    expect(Buffer.concat(got).equals(sent)).toBe(true);
  });

  it('takes what was already read into its buffer first', async () => {
    const [mine, theirs] = await openStream(memoryPair());
    mine.write('first ');
    await new Promise((resolve) => theirs.once('readable', resolve));
    mine.end('second');
    const got: string[] = [];
    await theirs.consume((piece) => got.push(Buffer.from(piece).toString()));
    expect(got.join('')).toBe('first second');
  });

  it('lends its pieces: on a socket their memory is gone after the call', async () => {
    const [mine, theirs] = await openStream(await yard.pair());
    const kept: Uint8Array[] = [];
    const lengths: number[] = [];
    const consumed = theirs.consume((piece) => {
      kept.push(piece);
      lengths.push(piece.length);
    });
    mine.end(pattern(100_000, 2));
    await consumed;
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(100_000);
    expect(kept.map((piece) => piece.length)).toEqual(lengths.map(() => 0));
  });

  it('leaves whole what others on the same socket have not read yet', async () => {
    const streams: LinkStream[] = [];
    const { guest } = await joinSessions(await yard.pair(), {}, { onStream: (stream) => void streams.push(stream) });
    const mine = [guest.open({}), guest.open({})];
    await expect.poll(() => streams.length).toBe(2);
    for (const stream of streams) stream.reply({});
    const sent = [pattern(900_000, 3), pattern(200_000, 4)];
    const [eaten, read] = streams;
    const got: Buffer[] = [];
    const consumed = eaten?.consume((piece) => got.push(Buffer.from(piece)));
    mine.forEach((stream, index) => void stream.end(sent[index]));
    await consumed;
    // Read last of all, when the pieces between which its own lay are long gone.
    expect(read === undefined ? undefined : (await buffer(read)).equals(sent[1] ?? Buffer.alloc(0))).toBe(true);
    expect(Buffer.concat(got).equals(sent[0] ?? Buffer.alloc(0))).toBe(true);
  });

  it('returns credit once in a turn, so that a turn takes at most a window', async () => {
    const accepted = Promise.withResolvers<LinkStream>();
    const peer = await rawPeer({ onStream: accepted.resolve });
    peer.send({ type: 'open', stream: 1, payload: json({}) });
    const stream = await accepted.promise;
    stream.reply({});
    let taken = 0;
    void stream.consume((piece) => {
      taken += piece.length;
    });
    const frame = dataFrame(1, Buffer.alloc(STREAM_WINDOW_BYTES / 4));
    peer.send(Buffer.concat([frame, frame, frame, frame]));
    await expect.poll(() => taken).toBe(STREAM_WINDOW_BYTES);
    await expect
      .poll(() => peer.seen.filter(({ type }) => type === 'window'))
      .toEqual([{ type: 'window', stream: 1, credit: STREAM_WINDOW_BYTES }]);
  });

  it('rejects with what its taker threw, asks it no more, and stays open for an answer', async () => {
    const [mine, theirs] = await openStream(await yard.pair());
    let calls = 0;
    const consumed = theirs.consume(() => {
      calls += 1;
      throw new Error('no room');
    });
    mine.end(pattern(4 * STREAM_WINDOW_BYTES, 5));
    await expect(consumed).rejects.toThrow('no room');
    theirs.end('refused');
    expect((await buffer(mine)).toString()).toBe('refused');
    expect(calls).toBe(1);
  });

  it('rejects with the reset of its peer', async () => {
    const [mine, theirs] = await openStream(memoryPair());
    const consumed = theirs.consume(() => undefined);
    mine.write('half', () => mine.reset('aborted'));
    await expect(consumed).rejects.toMatchObject({ code: 'stream_reset', resetCode: 'aborted' });
  });
});
