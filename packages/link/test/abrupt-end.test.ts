import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dialLink } from '../src/dial-link.ts';
import type { LinkSession } from '../src/link-session.ts';
import type { LinkStream } from '../src/link-stream.ts';
import { memoryPair } from './support/memory-stream.ts';
import { GENERATION, probeListener, SECRET } from './support/pair.ts';

/** How a stream ended: never cleanly unless both directions were whole. */
interface Ending {
  readonly ended: boolean;
  readonly code: unknown;
}

function watch(stream: LinkStream): Promise<Ending> {
  let ended = false;
  let code: unknown;
  stream.on('end', () => {
    ended = true;
  });
  stream.on('error', (error) => {
    code = 'code' in error ? error.code : error.message;
  });
  stream.resume();
  return new Promise((resolve) => stream.once('close', () => resolve({ ended, code })));
}

/** What `killAt` would send in all: preamble, answer, three OPEN, DATA and HEAD, three DATA back, one FIN. */
const TRAFFIC_BYTES = 52 + 21 + 3 * (20 + 109 + 22 + 23) + 9;

async function killAt(bytes: number): Promise<void> {
  const [guestEnd, hostEnd] = memoryPair({ killAfterBytes: bytes, cut: () => 50 });
  const endings: Promise<Ending>[] = [];
  const onStream = (stream: LinkStream, head: unknown): void => {
    // What the opener of stream 1 sent was whole; the stream itself was not.
    endings.push(watch(stream).then((ending) => (JSON.stringify(head) === '{"index":1}' ? { ...ending, ended: false } : ending)));
    stream.reply({ fine: true });
    stream.write('never finished');
  };
  const probe = probeListener({ onStream });
  const refused = probe.nextRefusal();
  probe.listener.accept(hostEnd);
  let guest: LinkSession;
  try {
    guest = await dialLink(guestEnd, { secret: SECRET, generation: GENERATION, onStream });
  } catch (error) {
    expect(error).toMatchObject({ code: 'link_lost' });
    const host = probe.sessions[0];
    if (host === undefined) expect(await refused).toMatchObject({ reason: 'preamble_cut' });
    else expect(await host.closed).toMatchObject({ code: 'link_lost' });
    return;
  }
  for (let index = 0; index < 3; index += 1) {
    const stream = guest.open({ index });
    endings.push(watch(stream));
    stream.write('x'.repeat(100));
    if (index === 1) stream.end();
  }
  const [host] = probe.sessions;
  expect(await guest.closed).toMatchObject({ code: 'link_lost' });
  expect(await host?.closed).toMatchObject({ code: 'link_lost' });
  for (const ending of await Promise.all(endings)) expect(ending).toEqual({ ended: false, code: 'link_lost' });
  expect(guest.openStreams + (host?.openStreams ?? 0)).toBe(0);
  expect(() => guest.open({})).toThrowError(expect.objectContaining({ code: 'link_lost' }));
  await expect(guest.ping()).rejects.toMatchObject({ code: 'link_lost' });
}

describe('a byte stream that breaks', () => {
  it('gives every open stream an error and none a clean end, at any byte', async () => {
    for (let bytes = 1; bytes <= TRAFFIC_BYTES; bytes += 1) await killAt(bytes);
  });

  it('gives an error to a stream whose peer had finished while this side had not', async () => {
    const [guestEnd, hostEnd] = memoryPair();
    const probe = probeListener({
      onStream: (stream) => {
        stream.reply({});
        stream.end('all of it');
      },
    });
    probe.listener.accept(hostEnd);
    const guest = await dialLink(guestEnd, { secret: SECRET, generation: GENERATION, onStream: () => {} });
    const stream = guest.open({});
    let body = '';
    stream.on('data', (chunk) => {
      body += String(chunk);
    });
    await new Promise((resolve) => stream.once('end', resolve));
    expect(body).toBe('all of it');
    const failed = new Promise((resolve) => stream.once('error', resolve));
    hostEnd.destroy();
    expect(await failed).toMatchObject({ code: 'link_lost' });
  });

  it('is a violation or a lost link, never anything else, when the peer sends garbage', async () => {
    const bytes = fc.oneof(fc.uint8Array({ minLength: 1, maxLength: 400 }), nearlyFrames());
    await fc.assert(
      fc.asyncProperty(bytes, async (garbage) => {
        const [guestEnd, hostEnd] = memoryPair({ cut: () => 13 });
        const probe = probeListener();
        const accepted = probe.nextSession();
        probe.listener.accept(hostEnd);
        const guest = await dialLink(guestEnd, { secret: SECRET, generation: GENERATION, onStream: () => {} });
        const host = await accepted;
        const ending = watch(host.open({}));
        guestEnd.write(garbage);
        guestEnd.end();
        const end = await host.closed;
        expect(end.code).not.toBe('internal_error');
        const { ended, code } = await ending;
        if (!ended) expect(['link_lost', 'link_closed', 'stream_reset']).toContain(code);
        await guest.closed;
      }),
      { numRuns: 300 },
    );
  });
});

/** Headers with small numbers, so that many are right on their own and wrong together. */
function nearlyFrames(): fc.Arbitrary<Uint8Array> {
  const frame = fc.tuple(
    fc.integer({ min: 1, max: 9 }),
    fc.integer({ min: 0, max: 4 }),
    fc.constantFrom(0, 1, 2, 4, 8),
    fc.constantFrom(0, 1, 0x61, 0x7b),
  );
  return fc
    .array(frame, { minLength: 1, maxLength: 12 })
    .map((frames) =>
      Buffer.concat(
        frames.map(([type, stream, length, fill]) =>
          Buffer.concat([Buffer.from([type, 0, 0, 0, stream, 0, 0, 0, length]), Buffer.alloc(length, fill)]),
        ),
      ),
    );
}

describe('two processes over a Unix socket', () => {
  it('talk, and the death of one is an error on every stream of the other', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fc-link-'));
    const probe = probeListener();
    const accepted = probe.nextSession();
    const server = createServer((socket) => probe.listener.accept(socket));
    await new Promise<void>((resolve) => server.listen(join(folder, 's'), resolve));
    const child = fork(fileURLToPath(new URL('./support/guest-process.ts', import.meta.url)), [join(folder, 's')], { execArgv: [] });
    try {
      const host = await accepted;
      const stream = host.open({ kind: 'exec' });
      expect(await stream.peerHead).toEqual({ pid: child.pid, head: { kind: 'exec' } });
      stream.write('over there');
      const [chunk] = await once(stream, 'data');
      expect(String(chunk)).toBe('over there');
      const ending = watch(stream);
      child.kill('SIGKILL');
      expect(await ending).toEqual({ ended: false, code: 'link_lost' });
      expect(await host.closed).toMatchObject({ code: 'link_lost' });
      expect(probe.listener.session).toBeUndefined();
    } finally {
      child.kill('SIGKILL');
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    }
  });
});
