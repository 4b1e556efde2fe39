// Plays the guest agent of a VM: answers like one until it is told, by the words of an exec, which attack comes next.
import { appendFileSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { dialLink, type LinkSession, type LinkStream, MAX_STALE_BYTES, STREAM_WINDOW_BYTES } from '@firecrew/link';
import { ANSWER_BREACHES, breaches, encodeFrame, type Frame, PING_FLOOD } from '@firecrew/link/testing';
import { HONEST_END, LYING_RECORDS } from '@firecrew/vmm/testing';

/** What the host takes for a request of a guest. */
const HEAD = { t: 'tunnel' };
/** An id that no session of a test comes to. */
const FOREIGN = 2_000_000;
const BREACHES = breaches({ head: HEAD, foreign: FOREIGN });
/** Time for an answer to leave before what follows it is sent past the session, in `ms`. */
const ANSWER_MS = 100;
const DRIP_MS = 500;
const NEVER_MS = 600_000;
const NUMBER = 1;
/** Streams of a flood that are open at a time. */
const BATCH = 500;
/** Writes that fill a window. */
const PIECES = 4;

interface Config {
  readonly generation: number;
  readonly secret: Buffer;
  readonly socketPath: string;
  readonly resync: boolean;
}

/** What an attack works with: the socket below its session, and the exec that ordered it, not answered yet. */
interface Attack {
  readonly socket: Socket;
  readonly session: LinkSession;
  readonly order: LinkStream;
  readonly argument: string;
}

const config = readConfig(process.argv[3] ?? '');
/** What the next dial says in the place of a preamble. */
let nextDial: 'honest' | 'babble' | 'impostor' = 'honest';
let lie = 0;

const send = (socket: Socket, ...frames: readonly (Frame | Uint8Array)[]): void => {
  for (const frame of frames) socket.write(frame instanceof Uint8Array ? frame : encodeFrame(frame));
};
/** Waits until the bytes have left. */
const push = (socket: Socket, bytes: Uint8Array): Promise<unknown> => new Promise((resolve) => socket.write(bytes, resolve));

/** What of its configuration a guest agent needs to dial. guest-init gives it as a file. */
function readConfig(file: string): Config {
  const { generation, secret, socketPath, resync } = JSON.parse(readFileSync(file, 'utf8')) as Omit<Config, 'secret'> & {
    readonly secret: string;
  };
  return { generation, secret: Buffer.from(secret, 'hex'), socketPath, resync };
}

function open({ session }: Attack, count: number, head: unknown): LinkStream[] {
  return Array.from({ length: count }, () => session.open(head, { headTimeoutMs: NEVER_MS }).resume());
}

async function accept({ order }: Attack): Promise<void> {
  order.reply({ ok: true });
  order.end();
  await delay(ANSWER_MS);
}

const ATTACKS: Readonly<Record<string, (attack: Attack) => Promise<void> | void>> = {
  breach: async (attack) => {
    await accept(attack);
    send(attack.socket, ...(BREACHES[Number(attack.argument)]?.[NUMBER] ?? []));
  },
  answer: ({ socket, order, argument }) => send(socket, ...(ANSWER_BREACHES[Number(argument)]?.[NUMBER](order.id ?? 0) ?? [])),
  garbage: async (attack) => {
    await accept(attack);
    // A frame type that there is not, and then bytes without any order.
    let state = 1;
    const bytes = Buffer.alloc(1_048_576);
    for (let at = 0; at < bytes.length; at += 1) {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      bytes[at] = at === 0 ? 0x7f : (state >> 16) & 0x7f;
    }
    send(attack.socket, bytes);
  },
  // Opened through the session, which else would take the host's answers for breaches; its own bounds are lifted.
  flood: async (attack) => {
    await accept(attack);
    for (let left = Number(attack.argument); left > 0; left -= BATCH) {
      const streams = open(attack, Math.min(left, BATCH), HEAD);
      while (streams.some(({ id }) => id === undefined) && !attack.socket.destroyed) await delay(1);
      for (const stream of streams) stream.reset('x');
    }
  },
  hoard: async (attack) => {
    await accept(attack);
    open(attack, Number(attack.argument), HEAD);
  },
  heads: async (attack) => {
    await accept(attack);
    for (const stream of open(attack, Number(attack.argument), { t: 'no such request', filler: 'x'.repeat(60_000) })) stream.end();
  },
  stall: async (attack) => {
    const count = Number(attack.argument);
    let gone = 0;
    const fill = (stream: LinkStream, left: number): void => {
      if (left === 0) return;
      stream.write(Buffer.alloc(STREAM_WINDOW_BYTES / PIECES), () => {
        gone += 1;
        fill(stream, left - 1);
      });
    };
    for (const stream of open(attack, count, HEAD)) fill(stream, 2 * PIECES);
    // What is left waits for credit. The answer comes behind all that was sent.
    while (gone < count * PIECES && !attack.socket.destroyed) await delay(1);
    await accept(attack);
  },
  drip: async (attack) => {
    await accept(attack);
    // The head of a stream that is said to come, byte by byte, and never is whole.
    send(attack.socket, Buffer.from([1, 0, 0, 0, 1, 0, 0, 0xff, 0xff]));
    while (!attack.socket.destroyed) {
      await push(attack.socket, Buffer.from(' '));
      await delay(DRIP_MS);
    }
  },
  deaf: async (attack) => {
    await accept(attack);
    attack.socket.pause();
    while (!attack.socket.destroyed) await push(attack.socket, PING_FLOOD);
  },
  lie: (attack) => {
    lie = Number(attack.argument);
    return accept(attack);
  },
  babble: (attack) => leave(attack, 'babble'),
  impostor: (attack) => leave(attack, 'impostor'),
  leave: (attack) => leave(attack, 'honest'),
  console: (attack) => {
    for (let written = 0; written < Number(attack.argument); written += 65_536) appendFileSync('/dev/console', 'console '.repeat(8192));
    return accept(attack);
  },
};

async function leave(attack: Attack, then: typeof nextDial): Promise<void> {
  nextDial = then;
  await accept(attack);
  attack.socket.destroy();
}

function serve(socket: Socket, session: LinkSession, stream: LinkStream, head: unknown): unknown {
  const request = typeof head === 'object' && head !== null && 't' in head ? head : { t: 'none' };
  const argv = 'argv' in request && Array.isArray(request.argv) ? request.argv.map(String) : [];
  if (request.t === 'exec') return ATTACKS[argv[0] ?? '']?.({ socket, session, order: stream, argument: argv[1] ?? '' });
  stream.resume();
  if (request.t === 'health') {
    const port = { up: true, port: 1, error: null };
    stream.reply({ ok: true, generation: config.generation, proxy: port, model: port, execs: 0 });
    stream.end();
  } else if (request.t === 'wait') {
    stream.reply({ ok: true });
    stream.end(LYING_RECORDS[lie]?.body ?? JSON.stringify({ ok: true, end: HONEST_END }));
  } else if (request.t === 'shutdown') {
    stream.reply({ ok: true });
    stream.end();
    setTimeout(() => process.exit(0), ANSWER_MS);
  } else stream.reset('not_here');
  return undefined;
}

async function dial({ socketPath, secret, generation, resync }: Config): Promise<void> {
  const socket = connect(socketPath);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined);
  const how = nextDial;
  nextDial = 'honest';
  if (how === 'babble') {
    socket.resume();
    while (!socket.destroyed) await push(socket, Buffer.alloc(MAX_STALE_BYTES / 16, 'babble '));
  } else {
    const said = how === 'impostor' ? Buffer.alloc(secret.length, 1) : secret;
    const session = await dialLink(socket, {
      ...{ secret: said, generation, resync, maxStreams: Number.MAX_SAFE_INTEGER },
      onStream: (stream, head, of) => serve(socket, of, stream, head),
    });
    await session.closed;
    socket.destroy();
  }
  await closed;
}

async function dialForEver(): Promise<void> {
  for (;;) {
    await dial(config).catch((error: unknown) => process.stderr.write(`hostile-guest-agent: ${String(error).slice(0, 200)}\n`));
    await delay(ANSWER_MS);
  }
}

void dialForEver();
