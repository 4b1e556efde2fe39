import { buffer } from 'node:stream/consumers';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { LinkSession } from '../src/link-session.ts';
import type { LinkStream } from '../src/link-stream.ts';
import { memoryPair } from './support/memory-stream.ts';
import { joinSessions } from './support/pair.ts';

interface Plan {
  readonly fromGuest: boolean;
  /** Lengths of the writes of the opener and of the acceptor. */
  readonly there: readonly number[];
  readonly back: readonly number[];
  readonly slowReader: boolean;
}

const writes = fc.array(fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 60_000, max: 150_000 })), { maxLength: 6 });
const plan = fc.record({ fromGuest: fc.boolean(), there: writes, back: writes, slowReader: fc.boolean() });

/** Bytes that tell their place in their direction, so that a swap, a loss or a copy shows. */
function body(lengths: readonly number[], seed: number): Buffer {
  const bytes = Buffer.alloc(lengths.reduce((sum, length) => sum + length, 0));
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = (at * 31 + (at >> 8) + seed) & 0xff;
  return bytes;
}

async function send(stream: LinkStream, lengths: readonly number[], seed: number): Promise<void> {
  const bytes = body(lengths, seed);
  let at = 0;
  for (const length of lengths) {
    await new Promise((resolve) => stream.write(bytes.subarray(at, at + length), resolve));
    at += length;
  }
  await new Promise<void>((resolve) => stream.end(resolve));
}

async function slowly(stream: LinkStream): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) {
    parts.push(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return Buffer.concat(parts);
}

async function run(plans: readonly Plan[], cuts: readonly number[]): Promise<void> {
  let turn = 0;
  const cut = (): number => {
    turn += 1;
    return cuts[turn % cuts.length] ?? 1;
  };
  const received = new Map<number, Promise<Buffer>>();
  const sent: Promise<void>[] = [];
  const onStream = (stream: LinkStream, head: unknown): void => {
    const index = Number(head);
    const wanted = plans[index];
    if (wanted === undefined) throw new Error('no such plan');
    stream.reply(index);
    received.set(index, wanted.slowReader ? slowly(stream) : buffer(stream));
    sent.push(send(stream, wanted.back, index + 100));
  };
  const { guest, host } = await joinSessions(memoryPair({ cut }), { onStream }, { onStream });
  await Promise.all(
    plans.map(async (wanted, index) => {
      const session: LinkSession = wanted.fromGuest ? guest : host;
      const stream = session.open(index);
      const back = wanted.slowReader ? slowly(stream) : buffer(stream);
      await send(stream, wanted.there, index);
      expect(await stream.peerHead).toBe(index);
      expect((await back).equals(body(wanted.back, index + 100))).toBe(true);
      expect((await received.get(index))?.equals(body(wanted.there, index))).toBe(true);
    }),
  );
  await Promise.all(sent);
  await host.close();
  await guest.closed;
}

it('carries every byte in its order, both ways, for any interleaving of streams and any cuts of the bytes below', async () => {
  const cuts = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1_000, max: 70_000 })), { minLength: 1, maxLength: 8 });
  const wide = cuts.filter((list) => list.some((length) => length >= 1_000));
  await fc.assert(fc.asyncProperty(fc.array(plan, { minLength: 1, maxLength: 6 }), wide, run), { numRuns: 40 });
});

it('carries every byte when they arrive one by one', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ fromGuest: fc.boolean(), there: fc.array(fc.nat(60)), back: fc.array(fc.nat(60)), slowReader: fc.boolean() }), {
        minLength: 1,
        maxLength: 4,
      }),
      (plans) => run(plans, [1]),
    ),
    { numRuns: 10 },
  );
});
