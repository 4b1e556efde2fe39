import { closeSync, openSync, readSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { dialLink, type LinkSession, type OnStream } from '@firecrew/link';
import type { AgentConfig } from '../agent-config.ts';

/** First and longest pause between two dials, in `ms`. */
export const REDIAL_FIRST_MS = 50;
export const REDIAL_MAX_MS = 5000;
/** Time in which the first session must be up, in `ms`: an agent that cannot reach its host ends, so that the VM visibly dies. */
export const FIRST_DIAL_MAX_MS = 60_000;

/** What a client tells of its link. */
export interface LinkEvents {
  readonly onStream: OnStream;
  /** A dial has left; the host has not judged it yet. */
  readonly onDial?: () => void;
  /** Gets lines for the console. */
  readonly note: (text: string) => void;
}

/** Keeps one session to the host: dials, and dials again with back-off whenever it is lost. Execs go on meanwhile. */
export class LinkClient {
  readonly #config: AgentConfig;
  readonly #events: LinkEvents;
  readonly #stop = new AbortController();
  #session: LinkSession | undefined;
  #hasDialled = false;

  constructor(config: AgentConfig, events: LinkEvents) {
    this.#config = config;
    this.#events = events;
  }

  /** Whether a dial has left. */
  get hasDialled(): boolean {
    return this.#hasDialled;
  }

  /** The live session, if there is one. */
  get session(): LinkSession | undefined {
    return this.#session;
  }

  /**
   * Runs until `close`. Rejects with `link_unreachable` when no first session came up, `link_refused` when the host wants none of this agent,
   * `host_gone` when the link stayed away for longer than the configuration allows.
   */
  async run(): Promise<void> {
    let pauseMs = REDIAL_FIRST_MS;
    let wasUp = false;
    let alone = performance.now();
    while (!this.#stop.signal.aborted) {
      try {
        this.#session = await this.#dial();
        wasUp = true;
        pauseMs = REDIAL_FIRST_MS;
        const end = await this.#session.closed;
        alone = performance.now();
        this.#events.note(`link ended: ${end.code}`);
      } catch (error) {
        if (codeOf(error) === 'link_refused') throw error;
        const aloneMs = performance.now() - alone;
        if (!wasUp && aloneMs > FIRST_DIAL_MAX_MS) {
          throw new CodedError('link_unreachable', `The host did not take the link within ${FIRST_DIAL_MAX_MS} ms.`, { cause: error });
        }
        // Nobody is left who would end this guest: it ends itself.
        if (wasUp && aloneMs > (this.#config.aloneMs ?? Number.POSITIVE_INFINITY)) {
          throw new CodedError('host_gone', `The host did not take the link again within ${this.#config.aloneMs} ms.`, { cause: error });
        }
        this.#events.note(`dial failed: ${codeOf(error) ?? messageOf(error)}`);
      }
      this.#session = undefined;
      await this.#pause(pauseMs);
      pauseMs = Math.min(pauseMs * 2, REDIAL_MAX_MS);
    }
  }

  /** Ends the session and dials no more. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#session?.close('shutdown');
  }

  async #dial(): Promise<LinkSession> {
    const socket = await connectTo(this.#config.socketPath);
    const { secret, generation, resync } = this.#config;
    const session = dialLink(socket, { secret, generation, resync, onStream: this.#events.onStream, randomBytes });
    this.#hasDialled = true;
    this.#events.onDial?.();
    return session;
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stop.signal }).catch(() => undefined);
  }
}

/** From the kernel: Node's module for it takes a third of the time in which Node itself starts. */
function randomBytes(length: number): Uint8Array {
  const fd = openSync('/dev/urandom', 'r');
  try {
    const bytes = new Uint8Array(length);
    if (readSync(fd, bytes) !== length) throw new Error('the kernel gave too few random bytes');
    return bytes;
  } finally {
    closeSync(fd);
  }
}

function connectTo(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('error', reject).once('connect', () => {
      socket.off('error', reject);
      resolve(socket);
    });
  });
}
