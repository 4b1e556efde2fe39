import { createServer, type Server, type Socket } from 'node:net';
import { codeOf } from '@firecrew/base';
import type { LinkSession } from '@firecrew/link';
import { decodeValue, type GuestRequest, replySchema } from '@firecrew/protocol';

/**
 * Connections to the proxy at a time; more are dropped without a word, since nothing is parsed here. It is above the tunnels that the host allows, so that
 * the host answers what is too much; with the calls below it stays under the streams of a link.
 */
export const MAX_PUMPED_TUNNELS = 704;
/** Connections to the model route at a time. */
export const MAX_PUMPED_CALLS = 256;

/** State of one listener; `port` is 0 while it is down. */
export interface PumpState {
  readonly up: boolean;
  readonly port: number;
  readonly error: string | null;
}

/** Ports of the listeners that are up. */
export interface LoopbackPorts {
  readonly proxy: number | undefined;
  readonly model: number | undefined;
}

/** A listener on loopback; each of its connections becomes one stream to the host. Nothing is parsed. */
export class LoopbackPump {
  readonly state: PumpState;
  readonly #server: Server | undefined;
  readonly #sockets: Set<Socket>;

  private constructor(state: PumpState, server: Server | undefined, sockets: Set<Socket>) {
    this.state = state;
    this.#server = server;
    this.#sockets = sockets;
  }

  /** Starts listening; a listener that cannot start is a state, not an error. */
  static start(port: number, request: GuestRequest, session: () => LinkSession | undefined): Promise<LoopbackPump> {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
      pump(socket, request, session());
    });
    server.maxConnections = request.t === 'tunnel' ? MAX_PUMPED_TUNNELS : MAX_PUMPED_CALLS;
    return new Promise((resolve) => {
      server.once('error', (error) => {
        const down = { up: false, port: 0, error: `cannot listen on 127.0.0.1:${port} (${codeOf(error) ?? 'error'})` };
        resolve(new LoopbackPump(down, undefined, sockets));
      });
      server.listen(port, '127.0.0.1', () => {
        // A failed accept (out of descriptors) is passing.
        server.on('error', () => undefined);
        const address = server.address();
        const bound = address !== null && typeof address === 'object' ? address.port : port;
        resolve(new LoopbackPump({ up: true, port: bound, error: null }, server, sockets));
      });
    });
  }

  /** Takes no more connections and ends those there are. */
  close(): void {
    this.#server?.close();
    for (const socket of [...this.#sockets]) socket.destroy();
  }
}

function pump(socket: Socket, request: GuestRequest, session: LinkSession | undefined): void {
  if (session === undefined) {
    socket.destroy();
    return;
  }
  try {
    const stream = session.open(request);
    const end = (): void => {
      socket.destroy();
      stream.destroy();
    };
    stream.on('error', end);
    socket.once('error', end).once('close', () => stream.destroy());
    // The end of one direction closes the other side's write end; else a client waits for its own time limit.
    socket.pipe(stream);
    stream.pipe(socket);
    stream.peerHead.then(
      (head) => {
        const reply = decodeValue(replySchema, head);
        if (!reply.ok || !reply.value.ok) end();
      },
      () => end(),
    );
  } catch {
    // The session ended, or has no room for another stream: the client sees a closed connection.
    socket.destroy();
  }
}
