import { randomBytes } from 'node:crypto';
import { chmod, chown } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { CodedError, messageOf } from '@firecrew/base';
import { checkSocketPath, LinkListener, type LinkSession, type LinkStream, SECRET_BYTES } from '@firecrew/link';
import { decodeMessage, GENERATION, GUEST_REQUEST_TYPES, guestRequestSchema, type Reply } from '@firecrew/protocol';
import type { BootSpec, GuestOwner } from '../port/driver.ts';

/** Connections to the socket of one VM at a time. */
export const MAX_GUEST_CONNECTIONS = 16;
/** Dials that may wait to be accepted: some VMMs stand still while they connect to a socket whose queue is full. */
const ACCEPT_QUEUE = 511;
/** Time a caller waits for a session when it says nothing else, in `ms`. */
export const SESSION_WAIT_MS = 30_000;

interface Waiter {
  readonly resolve: (session: LinkSession) => void;
  readonly reject: (error: CodedError) => void;
}

/** What the endpoint of one VM serves, and who is told of each new session. */
export type EndpointSpec = Pick<BootSpec, 'vmId' | 'onStream' | 'onRefused'> & { readonly onSession?: (session: LinkSession) => void };

/** The host's end of one VM's link: a Unix socket in a private folder, one secret, one session at a time. */
export class GuestEndpoint {
  readonly secret: Buffer;
  readonly socketPath: string;
  readonly #vmId: string;
  readonly #server: Server;
  readonly #listener: LinkListener;
  readonly #heard: ((session: LinkSession) => void) | undefined;
  readonly #waiters = new Set<Waiter>();
  #gone: CodedError | undefined;

  private constructor(spec: EndpointSpec, socketPath: string, resync: boolean) {
    this.#vmId = spec.vmId;
    this.#heard = spec.onSession;
    this.socketPath = socketPath;
    this.secret = randomBytes(SECRET_BYTES);
    this.#listener = new LinkListener({
      secret: this.secret,
      generation: GENERATION,
      onSession: (session) => this.#onSession(session),
      onRefused: spec.onRefused,
      onStream: (stream, head, session) => {
        const request = decodeMessage(guestRequestSchema, GUEST_REQUEST_TYPES, head);
        if (request.ok) return spec.onStream(stream, request.value, session);
        refuseStream(stream, request.code, request.message);
        return undefined;
      },
    });
    this.#server = createServer((socket) => this.#listener.accept(socket, { resync }));
    this.#server.maxConnections = MAX_GUEST_CONNECTIONS;
  }

  /**
   * Listens in a folder that is fresh and private. `resync` is for a dialler whose stream outlives the guest agent (a virtual
   * serial port). Throws `socket_path_too_long`, `listen_failed`.
   */
  static async open(spec: EndpointSpec, socketPath: string, owner: GuestOwner | undefined, resync = false): Promise<GuestEndpoint> {
    checkSocketPath(socketPath);
    const endpoint = new GuestEndpoint(spec, socketPath, resync);
    try {
      await endpoint.#listen();
      await chmod(socketPath, 0o600);
      if (owner !== undefined) await chown(socketPath, owner.uid, owner.gid);
    } catch (cause) {
      await endpoint.close();
      throw new CodedError('listen_failed', `The link socket of VM ${spec.vmId} could not be opened: ${messageOf(cause)}`, {
        id: spec.vmId,
        action: 'Give the VM a fresh folder on a local disk.',
        cause,
      });
    }
    return endpoint;
  }

  /** The live session, or the next. Rejects with `link_not_up` after `timeoutMs`, or with what ended the endpoint. */
  session(timeoutMs: number = SESSION_WAIT_MS): Promise<LinkSession> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    const live = this.#listener.session;
    if (live !== undefined) return Promise.resolve(live);
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
      };
      const waiter: Waiter = {
        resolve: (session) => {
          settle();
          resolve(session);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      const late = new CodedError('link_not_up', `The guest of VM ${this.#vmId} did not dial within ${timeoutMs} ms.`, {
        id: this.#vmId,
        action: 'Destroy the VM and start the attempt again.',
      });
      const timer = setTimeout(() => waiter.reject(late), timeoutMs);
      this.#waiters.add(waiter);
    });
  }

  /** The session that is live now. */
  get liveSession(): LinkSession | undefined {
    return this.#gone === undefined ? this.#listener.session : undefined;
  }

  /** No session will come any more; who waits gets `error`. */
  fail(error: CodedError): void {
    this.#gone ??= error;
    for (const waiter of [...this.#waiters]) waiter.reject(error);
  }

  /** Stops listening and ends the session. */
  async close(): Promise<void> {
    this.fail(new CodedError('vm_destroyed', `VM ${this.#vmId} was destroyed.`, { id: this.#vmId }));
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    await this.#listener.close();
    await closed;
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ path: this.socketPath, backlog: ACCEPT_QUEUE }, () => {
        this.#server.off('error', reject);
        // A failed accept (out of descriptors) is passing; the guest dials again.
        this.#server.on('error', () => undefined);
        resolve();
      });
    });
  }

  #onSession(session: LinkSession): void {
    this.#heard?.(session);
    for (const waiter of [...this.#waiters]) waiter.resolve(session);
  }
}

/** Answers a stream of the guest with a refusal and takes nothing from it. */
export function refuseStream(stream: LinkStream, code: string, message: string): void {
  stream.reply({ ok: false, code, message: message.slice(0, 1000) } satisfies Reply);
  stream.end();
  stream.resume();
}
