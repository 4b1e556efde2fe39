import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dialLink, LinkListener, type LinkSession, SECRET_BYTES } from '@firecrew/link';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { buildHarness, noHarness, type RunningRelay, startRelay } from './support/harness.ts';

/** Bytes that may wait in the relay, both lanes full. */
const RELAY_BYTES = 2 * 65_536;
/** Generous room for what the kernel keeps in the sockets on the way. */
const SOCKET_BYTES = 2 * 1024 * 1024;
const MIB = 1024 * 1024;

let folder = '';
let harness = '';
beforeAll(() => {
  if (noHarness !== undefined) return;
  folder = mkdtempSync(join(tmpdir(), 'fc-relay-'));
  harness = buildHarness(folder);
});
afterAll(() => {
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

/** The host: every dial of the relay, in order; a test takes them one by one. */
class Host {
  readonly #server: Server;
  readonly #dials: Socket[] = [];
  #waiting: ((socket: Socket) => void) | undefined;

  constructor() {
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      socket.on('error', () => undefined);
      if (this.#waiting === undefined) this.#dials.push(socket);
      else this.#waiting(socket);
      this.#waiting = undefined;
    });
  }

  async listen(path: string): Promise<void> {
    this.#server.listen(path);
    await once(this.#server, 'listening');
  }

  next(): Promise<Socket> {
    const dial = this.#dials.shift();
    if (dial !== undefined) return Promise.resolve(dial);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  close(): void {
    this.#server.close();
  }
}

async function dialAgent(path: string): Promise<Socket> {
  const socket = connect({ path, allowHalfOpen: true });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** All that comes until the end, or until `bytes` are there. */
function collect(socket: Socket, bytes = Number.POSITIVE_INFINITY): Promise<Buffer> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let length = 0;
    const done = (): void => resolve(Buffer.concat(parts));
    socket.on('data', (part: Buffer) => {
      parts.push(part);
      length += part.length;
      if (length >= bytes) done();
    });
    socket.once('end', done).once('close', done);
    if (socket.readableEnded || socket.destroyed) done();
    socket.resume();
  });
}

const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

async function sendInPieces(socket: Socket, bytes: Buffer, pieces: readonly number[]): Promise<void> {
  let at = 0;
  for (let turn = 0; at < bytes.length; turn += 1) {
    const end = at + (pieces[turn % pieces.length] ?? 1);
    if (!socket.write(bytes.subarray(at, end))) await once(socket, 'drain');
    at = end;
  }
}

/** Writes until nothing more is taken, which is when the relay and all sockets on the way are full. */
async function fill(socket: Socket, limit: number): Promise<number> {
  const part = Buffer.alloc(16_384);
  for (let sent = 0; sent < limit; sent += part.length) {
    if (socket.write(part)) continue;
    const drained = await Promise.race([once(socket, 'drain').then(() => true), idleFor(socket)]);
    if (!drained) return socket.bytesWritten - socket.writableLength;
  }
  return limit;
}

/** False once the kernel has taken nothing for many turns of the loop. */
async function idleFor(socket: Socket): Promise<false> {
  for (let same = 0, before = -1; same < 20; ) {
    const left = socket.writableLength;
    same = left === before ? same + 1 : 0;
    before = left;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}

/** Sockets that a relay has open: those it has always, and two for a session. */
const socketsOf = (pid: number): number =>
  readdirSync(`/proc/${pid}/fd`).filter((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:')).length;
const SESSION = 2;
/** What guest-init gives the last bytes of a session, in `ms`. */
const LAST_BYTES_MS = 2000;

const residentKib = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

describe.skipIf(noHarness !== undefined)(`the relay of the link${noHarness === undefined ? '' : ` (not run: ${noHarness})`}`, () => {
  let places = { agent: '', host: '' };
  let relay: RunningRelay;
  let host: Host;
  let turn = 0;
  const opened: Socket[] = [];
  const dial = async (): Promise<Socket> => {
    const socket = await dialAgent(places.agent);
    opened.push(socket);
    return socket;
  };
  const pair = async (): Promise<{ agent: Socket; far: Socket }> => {
    const agent = await dial();
    const far = await host.next();
    opened.push(far);
    return { agent, far };
  };

  beforeEach(async () => {
    turn += 1;
    places = { agent: join(folder, `a${turn}`), host: join(folder, `h${turn}`) };
    host = new Host();
    await host.listen(places.host);
    relay = await startRelay(harness, `unix:${places.host}`, places.agent);
  });
  afterEach(async () => {
    for (const socket of opened.splice(0)) socket.destroy();
    host.close();
    await relay.stop();
  });

  it('carries bytes both ways unchanged, however they are cut', async () => {
    const pieces = fc.array(fc.oneof(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 1, max: 200_000 })), {
      minLength: 1,
      maxLength: 20,
    });
    await fc.assert(
      fc.asyncProperty(pieces, pieces, async (up, down) => {
        const { agent, far } = await pair();
        const [there, back] = [randomBytes(MIB / 4 + 13), randomBytes(MIB / 4 + 7)];
        const [gotThere, gotBack] = [collect(far, there.length), collect(agent, back.length)];
        await Promise.all([sendInPieces(agent, there, up), sendInPieces(far, back, down)]);
        expect(digest(await gotThere)).toBe(digest(there));
        expect(digest(await gotBack)).toBe(digest(back));
        agent.destroy();
        await collect(far);
      }),
      { numRuns: 12, seed: 7 },
    );
  });

  it('ends both when the host drops one, and dials anew for the next connection, with nothing of the session before', async () => {
    const first = await pair();
    first.agent.write('said in vain');
    const ended = collect(first.agent);
    // A reset: the host was killed with bytes unread.
    await once(first.far.resume(), 'data');
    first.far.destroy();
    expect((await ended).length).toBe(0);
    const second = await pair();
    const heard = collect(second.far, 5);
    second.agent.write('again');
    expect(String(await heard)).toBe('again');
  });

  it('leaves nothing of a stalled session to the one after it', async () => {
    const first = await pair();
    await fill(first.agent, 8 * MIB);
    const second = await pair();
    const heard = collect(second.far, 3);
    second.agent.write('new');
    expect(String(await heard)).toBe('new');
    await collect(first.far);
  });

  it('carries a session of the link, and the next one of another epoch after the host was lost', async () => {
    const secret = randomBytes(SECRET_BYTES);
    const sessions: LinkSession[] = [];
    const listener = new LinkListener({
      secret,
      generation: 1,
      onSession: (session) => sessions.push(session),
      onRefused: () => undefined,
      onStream: () => undefined,
    });
    const begin = async (): Promise<{ session: LinkSession; far: Socket }> => {
      const agent = await dial();
      const dialled = dialLink(agent, { secret, generation: 1, resync: true, onStream: () => undefined });
      const far = await host.next();
      listener.accept(far.resume(), { resync: true });
      return { session: await dialled, far };
    };
    const first = await begin();
    first.far.destroy();
    expect((await first.session.closed).code).toBe('link_lost');
    const second = await begin();
    expect(sessions.map(({ epoch }) => epoch)).toEqual([first.session.epoch, second.session.epoch]);
    expect(first.session.epoch).not.toBe(second.session.epoch);
    await second.session.close('shutdown');
    await listener.close();
  });

  it.each(['agent', 'far'] as const)(
    'delivers the last bytes of the %s, though it only ends its half, and then ends both',
    async (which) => {
      const ends = await pair();
      const [from, to] = which === 'agent' ? [ends.agent, ends.far] : [ends.far, ends.agent];
      const last = randomBytes(MIB);
      const heard = collect(to);
      from.end(last);
      expect(digest(await heard)).toBe(digest(last));
      // The other half is closed to it as well.
      await collect(from);
      to.destroy();
      await pair();
    },
  );

  it('delivers what the agent said before it was gone, with bytes for it on their way', async () => {
    const { agent, far } = await pair();
    await fill(far, 8 * MIB);
    const last = randomBytes(200_000);
    const heard = collect(far);
    agent.write(last, () => agent.destroy());
    expect(digest(await heard)).toBe(digest(last));
  });

  it('pushes back on a sender whose reader stalls, in bounded memory, and loses nothing', async () => {
    const { agent, far } = await pair();
    const before = residentKib(relay.pid);
    const taken = await fill(agent, 64 * MIB);
    expect(taken).toBeLessThan(RELAY_BYTES + SOCKET_BYTES);
    expect(residentKib(relay.pid) - before).toBeLessThan(1024);
    // The other direction does not wait for it.
    const heard = collect(agent, 4);
    far.write('ping');
    expect(String(await heard)).toBe('ping');
    const sent = agent.bytesWritten;
    agent.end();
    expect((await collect(far)).length).toBe(sent);
  });

  it('cuts a session off when its last bytes find no reader, without a busy loop, and serves the next', async () => {
    const idle = socketsOf(relay.pid);
    const { agent } = await pair();
    await fill(agent, 8 * MIB);
    expect(socketsOf(relay.pid)).toBe(idle + SESSION);
    const at = performance.now();
    agent.destroy();
    await vi.waitUntil(() => socketsOf(relay.pid) === idle, { timeout: 15_000 });
    expect(performance.now() - at).toBeGreaterThan(LAST_BYTES_MS / 2);
    expect(relay.thousands()).toBe(0);
    const next = await pair();
    next.agent.write('x');
    expect(String(await collect(next.far, 1))).toBe('x');
  });

  it('closes a connection while the host does not answer, and carries one once it does', async () => {
    host.close();
    await new Promise((resolve) => setImmediate(resolve));
    rmSync(places.host, { force: true });
    expect((await collect(await dial())).length).toBe(0);
    host = new Host();
    await host.listen(places.host);
    const { agent, far } = await pair();
    agent.write('here');
    expect(String(await collect(far, 4))).toBe('here');
  });

  it('gives its place to a newer connection', async () => {
    const first = await pair();
    const second = await pair();
    await Promise.all([collect(first.agent), collect(first.far)]);
    second.far.write('second');
    expect(String(await collect(second.agent, 6))).toBe('second');
  });
});
