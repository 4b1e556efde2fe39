import { timingSafeEqual } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { checkIdentity } from './check-identity.ts';
import { type LinkClock, processClock } from './clock.ts';
import { resyncPadding } from './encode-frame.ts';
import { endStream } from './end-stream.ts';
import { CLOSE_TIMEOUT_MS, fillLimits, MAX_PENDING_STREAMS } from './limits.ts';
import { LinkSession } from './link-session.ts';
import { type PendingEvents, PendingStream } from './pending-stream.ts';
import { decodePreamble, encodeAnswer, type Preamble, verdictOf } from './preamble.ts';
import type { LinkRefusal, RefusalReason } from './reasons.ts';
import type { SessionOptions } from './session-options.ts';

/** What the listening side (the host) gives. */
export interface ListenerOptions extends SessionOptions {
  /** 32 bytes that only the peer knows. */
  readonly secret: Uint8Array;
  /** The one generation that is accepted, u32. */
  readonly generation: number;
  /** A session was accepted; the one before it, if any, has ended with `link_replaced`. */
  readonly onSession: (session: LinkSession) => void;
  /** A stream was refused and is being closed. */
  readonly onRefused: (refusal: LinkRefusal) => void;
  /** Unauthenticated streams held at a time; default `MAX_PENDING_STREAMS`. */
  readonly maxPending?: number;
}

/** Accepts sessions for one peer, one at a time: a right secret replaces the session there was. */
export class LinkListener {
  readonly #options: ListenerOptions;
  readonly #clock: LinkClock;
  readonly #pending = new Set<PendingStream>();
  #session: LinkSession | undefined;
  #closed = false;

  /** Throws `bad_secret_length`, `bad_generation`. */
  constructor(options: ListenerOptions) {
    checkIdentity(options);
    this.#options = options;
    this.#clock = options.clock ?? processClock;
  }

  /** The live session, if there is one. */
  get session(): LinkSession | undefined {
    return this.#session;
  }

  /**
   * Takes a byte stream that a peer has dialled; the outcome comes through `onSession` or `onRefused`. `resync` is for a stream
   * without connections (virtio-serial): it first ends a session that an earlier process of this side left behind, and a peer
   * that begins again in the middle of a session, with or without the end of its last frame, gets a new one.
   */
  accept(stream: Duplex, options: { readonly resync?: boolean } = {}): void {
    if (this.#closed) {
      void endStream(stream, this.#clock, 0);
      this.#options.onRefused({ reason: 'listener_closed', message: 'The listener is closed.' });
      return;
    }
    if (options.resync === true) stream.write(resyncPadding());
    this.#await(stream, new Uint8Array(0), options.resync === true);
  }

  /** Refuses what is pending, closes the session and settles when it is gone. */
  async close(reason = 'closed'): Promise<void> {
    this.#closed = true;
    for (const pending of [...this.#pending]) pending.refuse('listener_closed', 'The listener was closed.');
    await this.#session?.close(reason);
  }

  #await(stream: Duplex, rest: Uint8Array, resync: boolean): void {
    const limits = fillLimits(this.#options);
    const oldest = this.#pending.values().next().value;
    if (oldest !== undefined && this.#pending.size >= (this.#options.maxPending ?? MAX_PENDING_STREAMS)) {
      oldest.refuse('too_many_pending', 'More streams wait for their preamble than are allowed; the oldest was dropped.');
    }
    const events: PendingEvents = {
      onPreamble: (block, after) => {
        this.#pending.delete(pending);
        this.#judge(stream, decodePreamble(block), after, resync);
      },
      onRefused: (refusal) => {
        this.#pending.delete(pending);
        void endStream(stream, this.#clock, 0);
        this.#options.onRefused(refusal);
      },
    };
    const pending: PendingStream = new PendingStream(stream, this.#clock, limits, events, resync);
    this.#pending.add(pending);
    pending.start(rest);
  }

  #judge(stream: Duplex, preamble: Preamble, rest: Uint8Array, resync: boolean): void {
    const { secret, generation } = this.#options;
    if (!timingSafeEqual(preamble.secret, secret)) {
      this.#refuse(stream, preamble, 'wrong_secret', 'A stream was dialled with a wrong secret.');
    } else if (preamble.generation !== generation) {
      const message = `The peer speaks link generation ${preamble.generation}; this side demands ${generation}.`;
      this.#refuse(stream, preamble, 'generation_mismatch', message);
    } else {
      this.#begin(stream, preamble, rest, resync);
    }
  }

  #begin(stream: Duplex, preamble: Preamble, rest: Uint8Array, resync: boolean): void {
    const { generation } = this.#options;
    this.#answer(stream, preamble, undefined);
    this.#session?.replace();
    const identity = { side: 'listener', epoch: Buffer.from(preamble.epoch).toString('hex'), generation } as const;
    const takeBack = resync ? (after: Uint8Array): void => this.#await(stream, after, true) : undefined;
    const session = new LinkSession(stream, identity, this.#options, takeBack);
    this.#session = session;
    void session.closed.then(() => {
      if (this.#session === session) this.#session = undefined;
    });
    this.#options.onSession(session);
    session.start(rest);
  }

  #refuse(stream: Duplex, preamble: Preamble, reason: RefusalReason, message: string): void {
    this.#answer(stream, preamble, reason);
    void endStream(stream, this.#clock, CLOSE_TIMEOUT_MS);
    this.#options.onRefused({ reason, message });
  }

  #answer(stream: Duplex, preamble: Preamble, reason: RefusalReason | undefined): void {
    const verdict = reason === undefined ? 'accepted' : verdictOf(reason);
    stream.write(encodeAnswer({ epoch: preamble.epoch, generation: this.#options.generation, verdict }));
  }
}
