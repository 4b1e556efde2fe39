import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { dialLink } from '../src/dial-link.ts';
import { encodeFrame } from '../src/encode-frame.ts';
import { MAX_PENDING_STREAMS, MAX_STALE_BYTES, PREAMBLE_TIMEOUT_MS } from '../src/limits.ts';
import { LinkListener } from '../src/link-listener.ts';
import { encodeAnswer, encodePreamble, PREAMBLE_BYTES } from '../src/preamble.ts';
import { dataFrame, json } from '../src/testing/index.ts';
import { ManualClock } from './support/manual-clock.ts';
import { memoryPair } from './support/memory-stream.ts';
import { echo, GENERATION, joinSessions, probeListener, SECRET } from './support/pair.ts';
import { EPOCH, PREAMBLE, rawPeer } from './support/raw-peer.ts';

const dial = { secret: SECRET, generation: GENERATION, onStream: echo };
const WRONG = Buffer.alloc(32, 8);

function whenClosed(stream: Duplex): Promise<void> {
  return new Promise((resolve) => (stream.closed ? resolve() : stream.on('error', () => {}).once('close', () => resolve())));
}

describe('refusing', () => {
  it('refuses a wrong secret, says so to both sides and closes the stream, while the good session lives', async () => {
    const { guest, host, probe } = await joinSessions(memoryPair());
    const [guestEnd, hostEnd] = memoryPair();
    probe.listener.accept(hostEnd);
    await expect(dialLink(guestEnd, { ...dial, secret: WRONG })).rejects.toMatchObject({ code: 'link_refused', id: 'wrong_secret' });
    expect(probe.refusals).toMatchObject([{ reason: 'wrong_secret' }]);
    await whenClosed(hostEnd);
    expect(probe.listener.session).toBe(host);
    expect(await guest.ping()).toBeGreaterThanOrEqual(0);
  });

  it.each(Array.from({ length: 32 }, (_, at) => at))('refuses a secret that differs in byte %i alone', async (at) => {
    const secret = Buffer.from(SECRET);
    secret[at] = 0xff;
    const [guestEnd, hostEnd] = memoryPair();
    probeListener().listener.accept(hostEnd);
    await expect(dialLink(guestEnd, { ...dial, secret })).rejects.toMatchObject({ id: 'wrong_secret' });
  });

  it('refuses another generation than its own, and looks at the secret first', async () => {
    const probe = probeListener();
    for (const [secret, verdict] of [
      [SECRET, 'generation_mismatch'],
      [WRONG, 'wrong_secret'],
    ] as const) {
      const [guestEnd, hostEnd] = memoryPair();
      probe.listener.accept(hostEnd);
      await expect(dialLink(guestEnd, { ...dial, secret, generation: GENERATION + 1 })).rejects.toMatchObject({ id: verdict });
    }
    expect(probe.refusals.map((refusal) => refusal.reason)).toEqual(['generation_mismatch', 'wrong_secret']);
  });

  it('gives up on a stream that sends no preamble by the deadline, not before', async () => {
    const clock = new ManualClock();
    const probe = probeListener({ clock });
    const [guestEnd, hostEnd] = memoryPair();
    probe.listener.accept(hostEnd);
    guestEnd.write(PREAMBLE.subarray(0, PREAMBLE_BYTES - 1));
    clock.advance(PREAMBLE_TIMEOUT_MS - 1);
    expect(probe.refusals).toEqual([]);
    clock.advance(1);
    expect(probe.refusals).toMatchObject([{ reason: 'preamble_timeout' }]);
    await whenClosed(guestEnd);
  });

  it('lets a stream without connections wait for its first byte, as a serial port does for its machine, and counts from there', async () => {
    const clock = new ManualClock();
    const probe = probeListener({ clock });
    const [guestEnd, hostEnd] = memoryPair();
    guestEnd.resume();
    probe.listener.accept(hostEnd, { resync: true });
    clock.advance(10 * PREAMBLE_TIMEOUT_MS);
    expect(probe.refusals).toEqual([]);
    guestEnd.write(PREAMBLE.subarray(0, 1));
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(PREAMBLE_TIMEOUT_MS - 1);
    expect(probe.refusals).toEqual([]);
    clock.advance(1);
    expect(probe.refusals).toMatchObject([{ reason: 'preamble_timeout' }]);
  });

  it('gives up on a stream that sends too many bytes without a preamble', async () => {
    const probe = probeListener();
    const [guestEnd, hostEnd] = memoryPair();
    const refused = probe.nextRefusal();
    probe.listener.accept(hostEnd);
    guestEnd.write(Buffer.alloc(MAX_STALE_BYTES + 8));
    expect(await refused).toMatchObject({ reason: 'preamble_not_found' });
  });

  it('reports a stream that ends inside its preamble', async () => {
    const probe = probeListener();
    const [guestEnd, hostEnd] = memoryPair();
    const refused = probe.nextRefusal();
    probe.listener.accept(hostEnd);
    guestEnd.end(PREAMBLE.subarray(0, 20));
    expect(await refused).toMatchObject({ reason: 'preamble_cut' });
  });

  it('holds a bounded number of silent streams, so that they keep no honest dial out', async () => {
    const probe = probeListener();
    const silent = Array.from({ length: MAX_PENDING_STREAMS }, () => memoryPair());
    for (const [, hostEnd] of silent) probe.listener.accept(hostEnd);
    expect(probe.refusals).toEqual([]);
    const [guestEnd, hostEnd] = memoryPair();
    probe.listener.accept(hostEnd);
    expect(probe.refusals).toMatchObject([{ reason: 'too_many_pending' }]);
    expect(silent.map(([, end]) => end.destroyed).filter(Boolean)).toHaveLength(1);
    expect((await dialLink(guestEnd, dial)).generation).toBe(GENERATION);
  });

  it('refuses what is pending and what comes later once it is closed', async () => {
    const { guest, probe } = await joinSessions(memoryPair());
    probe.listener.accept(memoryPair()[1]);
    await probe.listener.close('shutting_down');
    probe.listener.accept(memoryPair()[1]);
    expect(probe.refusals.map((refusal) => refusal.reason)).toEqual(['listener_closed', 'listener_closed']);
    expect(await guest.closed).toMatchObject({ code: 'peer_closed', peerCode: 'shutting_down' });
  });

  it.each([
    ['a short secret', { secret: Buffer.alloc(31), generation: 1 }, 'bad_secret_length'],
    ['a long secret', { secret: Buffer.alloc(33), generation: 1 }, 'bad_secret_length'],
    ['a negative generation', { secret: SECRET, generation: -1 }, 'bad_generation'],
    ['a generation past u32', { secret: SECRET, generation: 2 ** 32 }, 'bad_generation'],
  ])('throws for %s on either side', async (_name, identity, code) => {
    const make = () => new LinkListener({ ...identity, onStream: echo, onSession: () => {}, onRefused: () => {} });
    expect(make).toThrowError(expect.objectContaining({ code }));
    await expect(dialLink(memoryPair()[0], { ...identity, onStream: echo })).rejects.toMatchObject({ code });
  });
});

describe('a second session', () => {
  it('replaces the first, whose streams end with an error', async () => {
    const first = await joinSessions(memoryPair());
    const stream = first.host.open({});
    await stream.peerHead;
    const failed = new Promise((resolve) => stream.on('error', resolve));
    const [guestEnd, hostEnd] = memoryPair();
    first.probe.listener.accept(hostEnd);
    const second = await dialLink(guestEnd, dial);
    expect(await first.host.closed).toMatchObject({ code: 'link_replaced' });
    expect(await failed).toMatchObject({ code: 'link_replaced' });
    expect(await first.guest.closed).toMatchObject({ code: 'peer_closed', peerCode: 'link_replaced' });
    expect(first.probe.listener.session?.epoch).toBe(second.epoch);
    expect(second.epoch).not.toBe(first.guest.epoch);
  });

  it('is not begun by a wrong secret', async () => {
    const first = await joinSessions(memoryPair());
    const [guestEnd, hostEnd] = memoryPair();
    first.probe.listener.accept(hostEnd);
    await dialLink(guestEnd, { ...dial, secret: WRONG }).catch(() => {});
    expect(first.probe.listener.session).toBe(first.host);
    expect(first.probe.sessions).toHaveLength(1);
  });
});

describe('a stream without connections', () => {
  it('finds the preamble behind the bytes of an earlier session', async () => {
    const [guestEnd, hostEnd] = memoryPair({ cut: () => 7 });
    guestEnd.write(dataFrame(1, Buffer.alloc(500, 0xff)).subarray(100));
    const { guest } = await joinSessions([guestEnd, hostEnd]);
    const stream = guest.open('x');
    stream.end('fresh');
    expect(await text(stream)).toBe('fresh');
  });

  it('takes no answer but the one to its own epoch', async () => {
    const [guestEnd, hostEnd] = memoryPair();
    hostEnd.write(dataFrame(2, Buffer.alloc(300)).subarray(11));
    hostEnd.write(encodeAnswer({ epoch: EPOCH, generation: GENERATION, verdict: 'wrong_secret' }));
    const { guest } = await joinSessions([guestEnd, hostEnd]);
    expect(await guest.ping()).toBeGreaterThanOrEqual(0);
  });

  const leftovers: [string, Uint8Array, string][] = [
    ['at a frame boundary', encodeFrame({ type: 'ping', token: 1n }), 'peer_restarted'],
    ['inside the payload of DATA', dataFrame(1, Buffer.alloc(60_000)).subarray(0, 100), 'peer_restarted'],
    ['inside a header', Buffer.from([3, 0]), 'frame_too_large'],
    ['inside a length', Buffer.from([4, 0, 0, 0, 1, 0, 0]), 'bad_frame_length'],
    ['inside a grant', encodeFrame({ type: 'window', stream: 1, credit: 1 }).subarray(0, 10), 'credit_overflow'],
    ['inside a code', encodeFrame({ type: 'rst', stream: 1, code: 'abc' }).subarray(0, 11), 'bad_code'],
    ['inside a head', encodeFrame({ type: 'open', stream: 3, payload: json('a long head') }).subarray(0, 12), 'bad_head'],
    ['inside a PONG', encodeFrame({ type: 'pong', token: 1n }).subarray(0, 12), 'unexpected_pong'],
  ];
  it.each(leftovers)('goes over to the new session when the guest began again %s', async (_name, leftover, code) => {
    const peer = await rawPeer({}, true);
    peer.send({ type: 'open', stream: 1, payload: json({}) }, leftover);
    const accepted = peer.probe.nextSession();
    peer.stream.removeAllListeners('data');
    const guest = await dialLink(peer.stream, { ...dial, resync: true });
    expect(await peer.session.closed).toMatchObject({ code });
    expect((await accepted).epoch).toBe(guest.epoch);
    const stream = guest.open('again');
    stream.end('fresh');
    expect(await text(stream)).toBe('fresh');
    expect(peer.probe.refusals).toEqual([]);
  });

  it('gives a new session to the right secret alone', async () => {
    const peer = await rawPeer({}, true);
    const refused = peer.probe.nextRefusal();
    peer.send(encodePreamble({ epoch: EPOCH, generation: GENERATION, secret: WRONG }));
    expect(await refused).toMatchObject({ reason: 'wrong_secret' });
    await whenClosed(peer.stream);
  });

  it('is what it must be said to be: on a connection a second preamble ends the session and the stream', async () => {
    const peer = await rawPeer();
    peer.send(PREAMBLE);
    expect(await peer.session.closed).toMatchObject({ code: 'peer_restarted' });
    await whenClosed(peer.stream);
    expect(peer.probe.sessions).toHaveLength(1);
  });

  it('goes over to the later of two preambles that waited in the stream', async () => {
    const probe = probeListener();
    const [guestEnd, hostEnd] = memoryPair();
    guestEnd.write(PREAMBLE);
    const dialled = dialLink(guestEnd, dial);
    probe.listener.accept(hostEnd, { resync: true });
    const guest = await dialled;
    expect(probe.sessions.map((session) => session.epoch)).toEqual([EPOCH.toString('hex'), guest.epoch]);
    expect(await guest.ping()).toBeGreaterThanOrEqual(0);
  });

  it('survives a chunk that holds nothing but thousands of right preambles', async () => {
    const probe = probeListener();
    const [guestEnd, hostEnd] = memoryPair();
    probe.listener.accept(hostEnd, { resync: true });
    const count = 3_000;
    const ended = new Promise<void>((resolve) => {
      const check = (): void => (probe.sessions.length === count ? resolve() : void setImmediate(check));
      check();
    });
    guestEnd.resume();
    guestEnd.write(Buffer.concat(Array.from({ length: count }, () => PREAMBLE)));
    await ended;
    expect(probe.refusals).toEqual([]);
  });

  it('ends a session that an earlier process of the host left behind', async () => {
    const { guest } = await joinSessions(memoryPair());
    expect(guest.generation).toBe(GENERATION);
    const [guestEnd, hostEnd] = memoryPair();
    const dialled = joinSessions([guestEnd, hostEnd]);
    const old = (await dialled).guest;
    hostEnd.removeAllListeners('data');
    probeListener().listener.accept(hostEnd, { resync: true });
    expect(await old.closed).toMatchObject({ code: 'peer_restarted' });
    await whenClosed(guestEnd);
  });
});

describe('dialling', () => {
  it('gives up when the listener does not answer in time, and closes the stream', async () => {
    const clock = new ManualClock();
    const [guestEnd] = memoryPair();
    const dialled = dialLink(guestEnd, { ...dial, clock });
    clock.advance(PREAMBLE_TIMEOUT_MS);
    await expect(dialled).rejects.toMatchObject({ code: 'preamble_timeout' });
    expect(guestEnd.destroyed).toBe(true);
  });

  it('reports a stream that ends or fails before the answer', async () => {
    const [ending, otherEnd] = memoryPair();
    const dialled = dialLink(ending, dial);
    otherEnd.end();
    await expect(dialled).rejects.toMatchObject({ code: 'link_lost' });
    const [failing] = memoryPair();
    const failed = dialLink(failing, dial);
    failing.destroy(new Error('port gone'));
    await expect(failed).rejects.toMatchObject({ code: 'link_lost' });
    await expect(dialLink(failing, dial)).rejects.toMatchObject({ code: 'link_lost' });
  });

  it('gives up on a stream full of other bytes', async () => {
    const [guestEnd, hostEnd] = memoryPair();
    hostEnd.write(Buffer.alloc(101));
    await expect(dialLink(guestEnd, { ...dial, maxStaleBytes: 90 })).rejects.toMatchObject({ code: 'preamble_not_found' });
  });

  it('sends exactly the preamble of its options', async () => {
    const [guestEnd, hostEnd] = memoryPair();
    const dialled = dialLink(guestEnd, { ...dial, randomBytes: () => EPOCH });
    const first = new Promise<Buffer>((resolve) => hostEnd.once('data', resolve));
    expect((await first).equals(encodePreamble({ epoch: EPOCH, generation: GENERATION, secret: SECRET }))).toBe(true);
    hostEnd.destroy();
    await expect(dialled).rejects.toMatchObject({ code: 'link_lost' });
  });
});
