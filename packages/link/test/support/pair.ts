import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { dialLink } from '../../src/dial-link.ts';
import { LinkListener, type ListenerOptions } from '../../src/link-listener.ts';
import type { LinkSession } from '../../src/link-session.ts';
import type { LinkRefusal } from '../../src/reasons.ts';
import type { OnStream, SessionOptions } from '../../src/session-options.ts';

export const SECRET = Buffer.alloc(32, 7);
export const GENERATION = 3;

/** Answers with the head it got and sends back what it gets. */
export const echo: OnStream = (stream, head) => {
  stream.reply({ echo: head });
  stream.pipe(stream);
};

export interface ListenerProbe {
  readonly listener: LinkListener;
  readonly sessions: LinkSession[];
  readonly refusals: LinkRefusal[];
  nextSession(): Promise<LinkSession>;
  nextRefusal(): Promise<LinkRefusal>;
}

/** A listener that remembers what it reported. */
export function probeListener(options: Partial<ListenerOptions> = {}): ListenerProbe {
  const sessions: LinkSession[] = [];
  const refusals: LinkRefusal[] = [];
  let onSession = Promise.withResolvers<LinkSession>();
  let onRefused = Promise.withResolvers<LinkRefusal>();
  const listener = new LinkListener({
    secret: SECRET,
    generation: GENERATION,
    onStream: echo,
    ...options,
    onSession: (session) => {
      sessions.push(session);
      onSession.resolve(session);
      onSession = Promise.withResolvers();
    },
    onRefused: (refusal) => {
      refusals.push(refusal);
      onRefused.resolve(refusal);
      onRefused = Promise.withResolvers();
    },
  });
  return { listener, sessions, refusals, nextSession: () => onSession.promise, nextRefusal: () => onRefused.promise };
}

export interface SessionPair {
  readonly guest: LinkSession;
  readonly host: LinkSession;
  readonly probe: ListenerProbe;
}

/** A session over two joined byte streams. */
export async function joinSessions(
  [guestEnd, hostEnd]: readonly [Duplex, Duplex],
  guestOptions: Partial<SessionOptions> = {},
  hostOptions: Partial<ListenerOptions> = {},
): Promise<SessionPair> {
  const probe = probeListener(hostOptions);
  const accepted = probe.nextSession();
  probe.listener.accept(hostEnd);
  const guest = await dialLink(guestEnd, { secret: SECRET, generation: GENERATION, onStream: echo, ...guestOptions });
  return { guest, host: await accepted, probe };
}

/** Real Unix sockets, made and removed by one test file. */
export interface SocketYard {
  pair(): Promise<[Socket, Socket]>;
  path: string;
  close(): Promise<void>;
}

export async function openSocketYard(): Promise<SocketYard> {
  const folder = await mkdtemp(join(tmpdir(), 'fc-link-'));
  const path = join(folder, 's');
  const waiting: ((socket: Socket) => void)[] = [];
  const all = new Set<Socket>();
  const server = createServer({ allowHalfOpen: false }, (socket) => {
    all.add(socket);
    waiting.shift()?.(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    path,
    pair: async () => {
      const accepted = new Promise<Socket>((resolve) => waiting.push(resolve));
      const dialled = connect(path);
      all.add(dialled);
      return [dialled, await accepted];
    },
    close: async () => {
      for (const socket of all) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
