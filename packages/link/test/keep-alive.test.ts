import { expect, it } from 'vitest';
import { KEEPALIVE_INTERVAL_MS, KEEPALIVE_MISSES } from '../src/limits.ts';
import { json } from '../src/testing/index.ts';
import { ManualClock } from './support/manual-clock.ts';
import { rawPeer } from './support/raw-peer.ts';

const pings = (peer: Awaited<ReturnType<typeof rawPeer>>): number => peer.seen.filter((frame) => frame.type === 'ping').length;

it('asks a silent peer in every interval and gives it up after the last question stays without an answer', async () => {
  const clock = new ManualClock();
  const peer = await rawPeer({ clock });
  const stream = peer.session.open({}, { headTimeoutMs: 3_600_000 });
  const failed = new Promise((resolve) => stream.once('error', resolve));
  clock.advance(KEEPALIVE_INTERVAL_MS);
  clock.advance(KEEPALIVE_INTERVAL_MS * (KEEPALIVE_MISSES + 1) - 1);
  await expect.poll(() => pings(peer)).toBe(KEEPALIVE_MISSES);
  expect(await Promise.race([peer.session.closed, Promise.resolve('live')])).toBe('live');
  clock.advance(1);
  expect(await peer.session.closed).toMatchObject({ code: 'peer_silent' });
  expect(await failed).toMatchObject({ code: 'link_lost' });
});

it('keeps a peer that answers, however long', async () => {
  const clock = new ManualClock();
  const peer = await rawPeer({ clock });
  for (let turn = 1; turn <= 10; turn += 1) {
    clock.advance(2 * KEEPALIVE_INTERVAL_MS);
    await expect.poll(() => pings(peer)).toBe(turn);
    const last = peer.seen.findLast((frame) => frame.type === 'ping');
    if (last?.type === 'ping') peer.send({ type: 'pong', token: last.token });
    peer.send({ type: 'ping', token: BigInt(turn) });
    await expect.poll(() => peer.seen).toContainEqual({ type: 'pong', token: BigInt(turn) });
  }
  expect(await Promise.race([peer.session.closed, Promise.resolve('live')])).toBe('live');
});

it.each([
  ['OPEN', [1, 0, 0, 0, 3]],
  ['DATA', [3, 0, 0, 0, 1]],
])('takes %s that never becomes whole for silence, however its bytes drip', async (_name, header) => {
  const clock = new ManualClock();
  const peer = await rawPeer({ clock });
  peer.send({ type: 'open', stream: 1, payload: json({}) }, Buffer.from([...header, 0, 1, 0, 0]));
  let over = false;
  void peer.session.closed.then(() => {
    over = true;
  });
  for (let turn = 0; turn < KEEPALIVE_MISSES + 3 && !over; turn += 1) {
    await new Promise((resolve) => peer.stream.write('x', resolve));
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(KEEPALIVE_INTERVAL_MS);
  }
  expect(await peer.session.closed).toMatchObject({ code: 'peer_silent' });
});
