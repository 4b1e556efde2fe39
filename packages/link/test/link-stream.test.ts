import { once } from 'node:events';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GRANT_THRESHOLD_BYTES, HEAD_TIMEOUT_MS, MAX_HEAD_BYTES, MAX_STREAMS, STREAM_WINDOW_BYTES } from '../src/limits.ts';
import { LinkStream } from '../src/link-stream.ts';
import { StreamResetError } from '../src/reasons.ts';
import { dataFrame, json } from '../src/testing/index.ts';
import { ManualClock } from './support/manual-clock.ts';
import { memoryPair } from './support/memory-stream.ts';
import { joinSessions, openSocketYard, type SocketYard } from './support/pair.ts';
import { rawPeer, type SeenFrame } from './support/raw-peer.ts';

let yard: SocketYard;
beforeAll(async () => {
  yard = await openSocketYard();
});
afterAll(() => yard.close());

/** A host stream handler whose streams the test takes hold of. */
function catchStreams(): { onStream: (stream: LinkStream) => void; next(): Promise<LinkStream> } {
  const caught: LinkStream[] = [];
  const waiting: ((stream: LinkStream) => void)[] = [];
  return {
    onStream: (stream) => {
      const take = waiting.shift();
      if (take === undefined) caught.push(stream);
      else take(stream);
    },
    next: () => {
      const stream = caught.shift();
      return stream === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(stream);
    },
  };
}

const failure = (stream: LinkStream): Promise<Error> => new Promise((resolve) => stream.once('error', resolve));

describe('heads', () => {
  it('reach the other side before any byte, each way', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(await yard.pair(), {}, streams);
    const mine = guest.open({ kind: 'tunnel', name: 'ünï' });
    mine.end('early');
    const theirs = await streams.next();
    expect(await theirs.peerHead).toEqual({ kind: 'tunnel', name: 'ünï' });
    expect(await text(theirs)).toBe('early');
    theirs.reply(null);
    theirs.end();
    expect(await mine.peerHead).toBeNull();
    expect(await text(mine)).toBe('');
  });

  it('are refused one byte past the limit, before anything is sent', async () => {
    const { guest } = await joinSessions(memoryPair());
    const largest = 'a'.repeat(MAX_HEAD_BYTES - 2);
    const stream = guest.open(largest);
    await expect(stream.peerHead).rejects.toMatchObject({ code: 'stream_reset', resetCode: 'handler_failed' });
    expect(() => guest.open(`${largest}a`)).toThrowError(expect.objectContaining({ code: 'head_too_large' }));
    expect(() => guest.open(undefined)).toThrowError(expect.objectContaining({ code: 'bad_head' }));
  });

  it('are sent once, by the accepting side, before its bytes', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(memoryPair(), {}, streams);
    const mine = guest.open({});
    expect(() => mine.reply({})).toThrowError(expect.objectContaining({ code: 'head_order' }));
    const theirs = await streams.next();
    theirs.reply({});
    expect(() => theirs.reply({})).toThrowError(expect.objectContaining({ code: 'head_order' }));
    for (const breakOrder of [(stream: LinkStream) => stream.write('x'), (stream: LinkStream) => stream.end()]) {
      guest.open({});
      const early = await streams.next();
      breakOrder(early);
      expect(await failure(early)).toMatchObject({ code: 'head_order' });
    }
  });

  it('that do not come in time reset their stream, on both sides', async () => {
    const clock = new ManualClock();
    const streams = catchStreams();
    const { guest } = await joinSessions(memoryPair(), { clock, keepAliveIntervalMs: 10 * HEAD_TIMEOUT_MS }, streams);
    const late = guest.open({});
    const short = guest.open({}, { headTimeoutMs: 5 });
    const answered = guest.open({});
    const theirs = await streams.next();
    await streams.next();
    (await streams.next()).reply({});
    await answered.peerHead;
    clock.advance(5);
    await expect(short.peerHead).rejects.toMatchObject({ code: 'head_timeout' });
    clock.advance(HEAD_TIMEOUT_MS - 6);
    expect(late.destroyed).toBe(false);
    clock.advance(1);
    await expect(late.peerHead).rejects.toMatchObject({ code: 'head_timeout' });
    expect(await failure(theirs)).toMatchObject({ code: 'stream_reset', resetCode: 'head_timeout', by: 'peer' });
    expect(answered.destroyed).toBe(false);
  });
});

describe('ending', () => {
  it('closes one direction and leaves the other open, either way round', async () => {
    const streams = catchStreams();
    const { guest, host } = await joinSessions(await yard.pair(), {}, streams);
    const mine = guest.open({});
    mine.end('request');
    const theirs = await streams.next();
    theirs.reply({});
    expect(await text(theirs)).toBe('request');
    theirs.write('one,');
    await once(mine, 'readable');
    theirs.end('two');
    expect(await text(mine)).toBe('one,two');

    const second = guest.open({});
    const answer = await streams.next();
    answer.reply({});
    answer.end('bye');
    expect(await text(second)).toBe('bye');
    second.write('still ');
    second.end('here');
    expect(await text(answer)).toBe('still here');
    await expect.poll(() => guest.openStreams + host.openStreams).toBe(0);
  });

  it('gives both sides the code of a reset', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(await yard.pair(), {}, streams);
    const mine = guest.open({});
    const theirs = await streams.next();
    theirs.reset('no_route');
    expect(await failure(theirs)).toMatchObject({ code: 'stream_reset', resetCode: 'no_route', by: 'local' });
    const error = await failure(mine);
    expect(error).toBeInstanceOf(StreamResetError);
    expect(error).toMatchObject({ code: 'stream_reset', resetCode: 'no_route', by: 'peer' });
    await expect(mine.peerHead).rejects.toBe(error);
    expect(() => mine.reset('Bad Code')).toThrowError(expect.objectContaining({ code: 'bad_reset_code' }));
  });

  it('tells the peer of a stream that was destroyed early, and that alone', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(memoryPair(), {}, streams);
    guest.open({}).destroy();
    guest.open({}).destroy(new Error('the reason stays here'));
    expect(await failure(await streams.next())).toMatchObject({ resetCode: 'cancelled' });
    expect(await failure(await streams.next())).toMatchObject({ resetCode: 'aborted' });
  });

  it('fails the write that was under way when the stream is reset', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(memoryPair(), {}, streams);
    const mine = guest.open({});
    const written = new Promise((resolve) => mine.write(Buffer.alloc(STREAM_WINDOW_BYTES + 1), resolve));
    (await streams.next()).reset('enough');
    expect(await written).toMatchObject({ code: 'stream_reset' });
  });

  it('makes an error that nobody listens to no end of the process', async () => {
    const streams = catchStreams();
    const { guest, host } = await joinSessions(memoryPair(), {}, streams);
    const mine = guest.open({});
    (await streams.next()).reset('unheard');
    await new Promise((resolve) => mine.once('close', resolve));
    expect(await host.ping()).toBeGreaterThanOrEqual(0);
  });

  it.each(['by iteration', 'by a consumer'])('does not follow from reading the other side to its end %s', async (how) => {
    const streams = catchStreams();
    const { guest } = await joinSessions(memoryPair(), {}, streams);
    for (let turn = 0; turn < 50; turn += 1) {
      const mine = guest.open({});
      const theirs = await streams.next();
      theirs.reply({});
      mine.write(Buffer.alloc(turn));
      mine.end();
      if (how === 'by a consumer') await buffer(theirs);
      else for await (const chunk of theirs) expect(chunk.length).toBe(turn);
      await new Promise((resolve) => setImmediate(resolve));
      theirs.end('late');
      expect(await text(mine)).toBe('late');
    }
  });

  it('follows from leaving an iteration early', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(memoryPair(), {}, streams);
    const mine = guest.open({});
    mine.write('some');
    const theirs = await streams.next();
    for await (const _chunk of theirs) break;
    expect(await failure(mine)).toMatchObject({ resetCode: 'cancelled' });
  });

  it('leaves what was received whole readable after the session has gone', async () => {
    const streams = catchStreams();
    const { guest, host } = await joinSessions(memoryPair(), {}, streams);
    const mine = guest.open({});
    const theirs = await streams.next();
    theirs.reply({});
    theirs.end(Buffer.alloc(100_000, 5));
    mine.end();
    await expect.poll(() => mine.writableFinished && theirs.writableFinished).toBe(true);
    expect(await host.ping()).toBeGreaterThanOrEqual(0);
    await host.close();
    await guest.closed;
    expect(await buffer(mine)).toHaveLength(100_000);
  });
});

describe('credit', () => {
  it('lets a stalled stream hold no more than its window, on either side, while others flow', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(await yard.pair(), {}, streams);
    const stalled = guest.open('stalled');
    const sink = await streams.next();
    sink.reply({});
    const total = 64 * 1_048_576;
    let offered = 0;
    const source = function* () {
      for (const chunk of chunks(total, 65_536)) {
        offered += chunk.length;
        yield chunk;
      }
    };
    const pouring = pipeline(Readable.from(source()), stalled).catch((error: unknown) => error);
    for (let turn = 0; turn < 20; turn += 1) {
      const other = guest.open('other');
      const theirs = await streams.next();
      theirs.reply({});
      theirs.pipe(theirs);
      other.end(Buffer.alloc(500_000, turn));
      expect((await buffer(other)).equals(Buffer.alloc(500_000, turn))).toBe(true);
    }
    // One window with the peer, one in the writer's own buffer, and what the pipeline has in hand.
    expect(offered).toBeLessThanOrEqual(3 * STREAM_WINDOW_BYTES);
    expect(sink.readableLength).toBeLessThanOrEqual(STREAM_WINDOW_BYTES);
    let got = 0;
    for await (const chunk of sink) got += (chunk as Buffer).length;
    expect(got).toBe(total);
    await pouring;
  });

  it.each([
    [
      'in flowing mode',
      async (stream: LinkStream) => {
        let got = 0;
        stream.on('data', (chunk: Buffer) => {
          got += chunk.length;
        });
        await once(stream, 'end');
        return got;
      },
    ],
    [
      'by read() without a size',
      async (stream: LinkStream) => {
        let got = 0;
        stream.on('readable', () => {
          for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) got += chunk.length;
        });
        await once(stream, 'end');
        return got;
      },
    ],
    [
      'by read() of 100,000 bytes',
      async (stream: LinkStream) => {
        let got = 0;
        stream.on('readable', () => {
          for (let chunk = stream.read(100_000); chunk !== null; chunk = stream.read(100_000)) got += chunk.length;
        });
        await once(stream, 'end');
        return got;
      },
    ],
    [
      'by iteration',
      async (stream: LinkStream) => {
        let got = 0;
        for await (const chunk of stream) got += chunk.length;
        return got;
      },
    ],
    [
      'with pauses',
      async (stream: LinkStream) => {
        let got = 0;
        stream.on('data', (chunk: Buffer) => {
          got += chunk.length;
          stream.pause();
          setImmediate(() => stream.resume());
        });
        await once(stream, 'end');
        return got;
      },
    ],
  ])('comes back from a reader %s', async (_name, read) => {
    const streams = catchStreams();
    const { guest } = await joinSessions(await yard.pair(), {}, streams);
    const mine = guest.open({});
    const total = 3 * STREAM_WINDOW_BYTES + 12_345;
    void pipeline(Readable.from(chunks(total, 9_999)), mine);
    const theirs = await streams.next();
    theirs.reply({});
    expect(await read(theirs)).toBe(total);
  });

  it('is returned for what the reader took, in halves of the window, and for nothing else', async () => {
    const streams = catchStreams();
    const peer = await rawPeer(streams);
    peer.send({ type: 'open', stream: 1, payload: json({}) });
    const theirs = await streams.next();
    theirs.reply({});
    for (let sent = 0; sent < STREAM_WINDOW_BYTES; sent += 16_384) peer.send(dataFrame(1, Buffer.alloc(16_384)));
    const grants = (): SeenFrame[] => peer.seen.filter((frame) => frame.type === 'window');
    const settled = async (): Promise<void> => {
      const token = BigInt(peer.seen.length);
      peer.send({ type: 'ping', token });
      await expect.poll(() => peer.seen).toContainEqual({ type: 'pong', token });
    };
    await settled();
    expect(grants()).toEqual([]);
    theirs.read(0);
    for (let taken = 0; taken < GRANT_THRESHOLD_BYTES - 1; ) taken += take(theirs, Math.min(16_384, GRANT_THRESHOLD_BYTES - 1 - taken));
    await settled();
    expect(grants()).toEqual([]);
    for (let taken = 0; taken < 20_000; ) taken += take(theirs, 1_000);
    await settled();
    expect(grants()).toHaveLength(1);
    const [grant] = grants();
    expect(grant?.type === 'window' && grant.credit).toBeGreaterThanOrEqual(GRANT_THRESHOLD_BYTES);
    expect(grant?.type === 'window' && grant.credit).toBeLessThanOrEqual(GRANT_THRESHOLD_BYTES + 20_000);
  });

  it('keeps the memory of a write until its bytes have left', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(await yard.pair(), {}, streams);
    const mine = guest.open({});
    const theirs = await streams.next();
    theirs.reply({});
    const memory = Buffer.alloc(50_000);
    void (async () => {
      for (let turn = 0; turn < 100; turn += 1) {
        memory.fill(turn);
        await new Promise((resolve) => mine.write(memory, resolve));
      }
      mine.end();
    })();
    const got = await buffer(theirs);
    for (let turn = 0; turn < 100; turn += 1)
      expect(got.subarray(turn * 50_000, (turn + 1) * 50_000).equals(Buffer.alloc(50_000, turn))).toBe(true);
  });
});

describe('many streams', () => {
  it('carries 1,000 at once from each side', async () => {
    const { guest, host } = await joinSessions(await yard.pair());
    const talk = async (session: typeof guest, index: number): Promise<void> => {
      const stream = session.open(index);
      const body = `${index} `.repeat(200);
      stream.end(body);
      expect(await stream.peerHead).toEqual({ echo: index });
      expect(await text(stream)).toBe(body);
    };
    await Promise.all(Array.from({ length: 2_000 }, (_, index) => talk(index % 2 === 0 ? guest : host, index)));
    await expect.poll(() => guest.openStreams + host.openStreams).toBe(0);
  });

  it('refuses to open one more than the limit, and opens again when one has ended', async () => {
    const streams = catchStreams();
    const { guest } = await joinSessions(memoryPair(), {}, streams);
    const open = Array.from({ length: MAX_STREAMS }, () => guest.open({}));
    expect(() => guest.open({})).toThrowError(expect.objectContaining({ code: 'too_many_streams' }));
    open[0]?.reset('done');
    expect(guest.open({})).toBeInstanceOf(LinkStream);
  });

  it('numbers streams without gaps when some are dropped before they left', async () => {
    const { guest } = await joinSessions(memoryPair());
    const streams = Array.from({ length: 300 }, (_, index) => guest.open({ index, pad: 'p'.repeat(5_000) }));
    streams.forEach((stream, index) => {
      if (index % 3 === 0) stream.reset('dropped');
      else stream.end();
    });
    for (const [index, stream] of streams.entries()) if (index % 3 !== 0) expect(await text(stream)).toBe('');
    expect(await guest.ping()).toBeGreaterThanOrEqual(0);
  });
});

function take(stream: LinkStream, bytes: number): number {
  const chunk: Buffer | null = stream.read(bytes);
  return chunk?.length ?? 0;
}

function* chunks(total: number, size: number): Generator<Buffer> {
  for (let left = total; left > 0; left -= size) yield Buffer.alloc(Math.min(size, left), 1);
}
