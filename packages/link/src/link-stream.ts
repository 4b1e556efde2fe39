import { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';
import { CodedError } from '@firecrew/base';
import { isWireCode } from './frame.ts';
import { encodeHead } from './head.ts';
import { Inbox, ownPart } from './inbox.ts';
import { GRANT_THRESHOLD_BYTES, STREAM_WINDOW_BYTES } from './limits.ts';
import { StreamResetError } from './reasons.ts';
import type { StreamWire } from './stream-wire.ts';

function ignoreError(): void {}
function ignorePiece(): void {}

/**
 * One stream of a link session: a Duplex whose two directions end apart. It carries a JSON head each way before the bytes.
 *
 * Errors: `link_lost`, `link_closed`, `link_replaced` when the session ends, `stream_reset` (a `StreamResetError`) when either
 * side resets it, `head_timeout`, `head_order` for bytes before `reply`. An 'error' without a listener does not end the
 * process: the peer decides when a stream breaks.
 */
export class LinkStream extends Duplex {
  /** The peer's head: at once for an accepted stream, with the answer for an opened one. Rejects with the stream's error. */
  readonly peerHead: Promise<unknown>;
  readonly #wire: StreamWire;
  readonly #inbox = new Inbox();
  readonly #resolveHead: (head: unknown) => void;
  readonly #rejectHead: (error: Error) => void;
  #wanted = false;
  #ended = false;
  #cancelTimeout: (() => void) | undefined;
  #isGrantDue = false;
  #take: ((piece: Uint8Array) => void) | undefined;

  /** Made by a session alone; with `headTimeoutMs` the stream is reset unless the peer's head comes in time. */
  constructor(wire: StreamWire, headTimeoutMs?: number) {
    // A reader takes one chunk at a time; all else that was received stays in the inbox, where it is compact.
    super({ allowHalfOpen: true, readableHighWaterMark: 1, writableHighWaterMark: STREAM_WINDOW_BYTES });
    this.#wire = wire;
    const head = Promise.withResolvers<unknown>();
    this.peerHead = head.promise;
    this.#resolveHead = head.resolve;
    this.#rejectHead = head.reject;
    this.peerHead.catch(ignoreError);
    this.on('error', ignoreError);
    wire.events = {
      onHead: (value) => this.#onHead(value),
      onBytes: (part) => this.#onBytes(part),
      onEnd: () => this.#deliver(),
      onFail: (error) => this.destroy(error),
    };
    if (headTimeoutMs !== undefined) this.#cancelTimeout = wire.port.after(headTimeoutMs, () => this.#onHeadTimeout(headTimeoutMs));
  }

  /** Number of the stream on the wire; undefined until OPEN has left. */
  get id(): number | undefined {
    return this.#wire.id;
  }

  /**
   * Sends this side's head, once, on an accepted stream, before any byte. Throws `bad_head`, `head_too_large`, and `head_order`
   * on an opened stream or the second time; does nothing on a stream that is over.
   */
  reply(head: unknown): void {
    const wire = this.#wire;
    if (wire.role !== 'acceptor' || wire.headSent || wire.headToSend !== undefined) {
      throw new CodedError('head_order', `Link stream ${wire.id} has sent its head already.`);
    }
    const bytes = encodeHead(head);
    if (wire.gone) return;
    wire.headToSend = bytes;
    wire.port.wake(wire);
  }

  /** Ends the stream at once, both ways, and tells the peer `code` (snake_case, at most 64). Throws `bad_reset_code`. */
  reset(code: string): void {
    if (!isWireCode(code)) throw new CodedError('bad_reset_code', 'A reset code is snake_case with at most 64 characters.');
    this.destroy(new StreamResetError(code, 'local', this.#wire.id));
  }

  /**
   * Iterates over the received bytes. Leaving early destroys the stream; reading to the end does not, since this side may still
   * be writing: Node's own iterator destroys a Duplex there.
   */
  override async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, undefined, unknown> {
    let whole = false;
    try {
      for await (const chunk of this.iterator({ destroyOnReturn: false })) yield chunk;
      whole = true;
    } finally {
      if (!whole) this.destroy();
    }
  }

  /**
   * Hands all that is received to `take` as it comes, in place of reading it: each piece is a view that is valid during the call
   * alone, so nothing is copied or held. Settles at the peer's FIN. Rejects with the stream's error, or with what `take` threw; the
   * stream is then open still, and what comes is dropped.
   */
  async consume(take: (piece: Uint8Array) => void): Promise<void> {
    const ended = finished(this, { writable: false });
    const failed = Promise.withResolvers<void>();
    this.#take = (piece) => {
      try {
        take(piece);
      } catch (error) {
        this.#take = ignorePiece;
        failed.reject(error);
      }
    };
    for (let held: Buffer | null = this.read(); held !== null; held = this.read()) this.#take(held);
    this.resume();
    await Promise.race([ended, failed.promise]);
  }

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#send([chunk], done);
  }

  override _writev(chunks: { chunk: Uint8Array }[], done: (error?: Error | null) => void): void {
    this.#send(
      chunks.map((entry) => entry.chunk),
      done,
    );
  }

  override _final(done: (error?: Error | null) => void): void {
    if (!this.#mayWrite(done)) return;
    this.#wire.finWanted = () => {
      done();
      this.#grant();
    };
    this.#wire.port.wake(this.#wire);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    const wire = this.#wire;
    const cause = error ?? new CodedError('stream_destroyed', `Link stream ${wire.id ?? '(not yet sent)'} was destroyed.`);
    if (!wire.gone && !wire.complete) wire.port.reset(wire, resetCodeOf(error));
    wire.gone = true;
    wire.port.release(wire);
    this.#cancelTimeout?.();
    this.#rejectHead(cause);
    this.#inbox.clear();
    wire.outbox.settle(cause);
    done(error);
  }

  #onHeadTimeout(ms: number): void {
    this.destroy(new CodedError('head_timeout', `Link stream ${this.#wire.id ?? '(not yet sent)'} got no head within ${ms} ms.`));
  }

  #onHead(head: unknown): void {
    this.#cancelTimeout?.();
    this.#resolveHead(head);
  }

  #onBytes(part: Uint8Array): boolean {
    if (this.#take !== undefined) {
      this.#take(part);
      this.#grantLater();
      return false;
    }
    if (!this.#wanted || this.#inbox.bytes > 0) return this.#inbox.add(part);
    const own = ownPart(part);
    this.#wanted = this.push(own);
    this.#grant();
    return own === part;
  }

  /** A peer that gets its credit at once can keep one turn of this process going for as long as it sends; so, a turn takes one window. */
  #grantLater(): void {
    if (this.#isGrantDue) return;
    this.#isGrantDue = true;
    setImmediate(() => {
      this.#isGrantDue = false;
      this.#grant();
    });
  }

  #deliver(): void {
    while (this.#wanted) {
      const chunk = this.#inbox.take();
      if (chunk === undefined) break;
      this.#wanted = this.push(chunk);
    }
    if (this.#wire.finReceived && this.#inbox.bytes === 0 && !this.#ended) {
      this.#ended = true;
      this.push(null);
    }
    this.#grant();
  }

  /** Credit comes from what the reader took, however it took it: received, less what is still held, less what was granted. */
  #grant(): void {
    const wire = this.#wire;
    if (wire.complete && this.#inbox.bytes + this.readableLength === 0) wire.port.release(wire);
    if (wire.gone || wire.finReceived) return;
    const free = wire.received - this.#inbox.bytes - this.readableLength - wire.granted;
    if (free < GRANT_THRESHOLD_BYTES) return;
    wire.granted += free;
    wire.port.grant(wire, free);
  }

  #mayWrite(done: (error?: Error | null) => void): boolean {
    const wire = this.#wire;
    if (wire.headSent || wire.headToSend !== undefined) return true;
    done(new CodedError('head_order', `Link stream ${wire.id} was written to before its head.`, { action: 'Call reply first.' }));
    return false;
  }

  #send(parts: readonly Uint8Array[], done: (error?: Error | null) => void): void {
    if (!this.#mayWrite(done)) return;
    this.#wire.outbox.put(parts, done);
    if (this.#wire.outbox.bytes === 0) this.#wire.outbox.settle();
    else this.#wire.port.wake(this.#wire);
  }
}

function resetCodeOf(error: Error | null): string {
  if (error instanceof StreamResetError) return error.resetCode;
  if (error instanceof CodedError && error.code === 'head_timeout') return error.code;
  return error === null ? 'cancelled' : 'aborted';
}
