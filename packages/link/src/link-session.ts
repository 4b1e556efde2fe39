import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { CodedError, messageOf } from '@firecrew/base';
import { type LinkClock, processClock } from './clock.ts';
import { FrameDecoder, type FrameSink } from './decode-frame.ts';
import { endStream } from './end-stream.ts';
import { type Frame, isWireCode } from './frame.ts';
import { FrameWriter } from './frame-writer.ts';
import { decodeHead, encodeHead } from './head.ts';
import { KeepAlive } from './keep-alive.ts';
import { CLOSE_TIMEOUT_MS, fillLimits, type LinkLimits } from './limits.ts';
import { LinkStream } from './link-stream.ts';
import { PingTable } from './ping-table.ts';
import { type LinkEnd, type LinkEndCode, ProtocolViolation, streamErrorOf } from './reasons.ts';
import type { OnStream, SessionIdentity, SessionOptions } from './session-options.ts';
import { StreamTable } from './stream-table.ts';
import { StreamWire, type WirePort } from './stream-wire.ts';

/**
 * One authenticated session over one byte stream, which it owns and destroys when it ends.
 *
 *   live -> ended (`closed` settles; every open stream gets an error; the underlying stream is destroyed)
 *
 * On a stream without connections, `peer_restarted` and breaches of the format leave it to the listener, who looks for a new
 * preamble.
 */
export class LinkSession {
  readonly epoch: string;
  readonly generation: number;
  /** How the session ended. Never rejects. */
  readonly closed: Promise<LinkEnd>;
  readonly #stream: Duplex;
  readonly #onStream: OnStream;
  readonly #limits: Required<LinkLimits>;
  readonly #clock: LinkClock;
  readonly #table: StreamTable;
  readonly #writer: FrameWriter;
  readonly #keepAlive: KeepAlive;
  readonly #pings: PingTable;
  readonly #port: WirePort;
  readonly #decoder = new FrameDecoder();
  readonly #sink: FrameSink;
  readonly #onRestart: ((rest: Uint8Array) => void) | undefined;
  readonly #settle: (end: LinkEnd) => void;
  readonly #detach: () => void;
  #streamClosed: Promise<void> = Promise.resolve();
  #end: LinkEnd | undefined;
  #current: StreamWire | undefined;
  /** Something of the chunk at hand is still looked at after it was taken. */
  #isKept = false;

  /** Made by `dialLink` and `LinkListener`. `onRestart` takes a stream without connections back. */
  constructor(stream: Duplex, identity: SessionIdentity, options: SessionOptions, onRestart?: (rest: Uint8Array) => void) {
    this.epoch = identity.epoch;
    this.generation = identity.generation;
    this.#stream = stream;
    this.#onStream = options.onStream;
    this.#onRestart = onRestart;
    this.#limits = fillLimits(options);
    this.#clock = options.clock ?? processClock;
    this.#table = new StreamTable(identity.side);
    this.#pings = new PingTable(this.#clock);
    const { promise, resolve } = Promise.withResolvers<LinkEnd>();
    this.closed = promise;
    this.#settle = resolve;
    this.#writer = new FrameWriter(stream, {
      nextId: (wire) => this.#table.number(wire),
      onStalledPeer: () => this.#violate(new ProtocolViolation('peer_stalled', 'The peer sends requests and does not read the answers.')),
    });
    this.#port = this.#makePort();
    this.#sink = this.#makeSink();
    this.#keepAlive = new KeepAlive(this.#clock, this.#limits.keepAliveIntervalMs, {
      sendPing: () => this.#writer.control({ type: 'ping', token: this.#pings.add(undefined) }),
      onSilentPeer: () => this.#finish('peer_silent', 'The peer sent no whole frame and answered no PING in time.', 'peer_silent'),
    });
    this.#detach = this.#attach();
  }

  /** Streams that are open, both sides' together. */
  get openStreams(): number {
    return this.#table.localOpen + this.#table.peerOpen;
  }

  /** Takes the bytes that came with the handshake, then all that follow. Called once, by who made the session. */
  start(rest: Uint8Array): void {
    if (this.#end !== undefined) return;
    this.#stream.on('data', this.#onChunk);
    if (rest.length > 0) this.#onData(rest);
    if (this.#end === undefined) this.#stream.resume();
  }

  /**
   * Opens a stream with `head` (JSON, at most 64 KiB). Bytes may be written at once; the peer's head is `stream.peerHead`.
   * Throws `link_closed`, `link_replaced` or `link_lost` when the session is over, `too_many_streams`, `bad_head`, `head_too_large`.
   */
  open(head: unknown, options: { readonly headTimeoutMs?: number } = {}): LinkStream {
    if (this.#end !== undefined) throw streamErrorOf(this.#end);
    const payload = encodeHead(head);
    if (this.#table.localOpen >= this.#limits.maxStreams || !this.#table.idsLeft) {
      throw new CodedError('too_many_streams', `Link session ${this.epoch} has ${this.#table.localOpen} streams of this side open.`);
    }
    const wire = new StreamWire(this.#port, 'opener', undefined);
    this.#table.addWaiting(wire);
    const stream = new LinkStream(wire, options.headTimeoutMs ?? this.#limits.headTimeoutMs);
    wire.headToSend = payload;
    this.#writer.wake(wire);
    return stream;
  }

  /** Round-trip time in milliseconds. Rejects when the session ends first; no deadline of its own beyond the keep-alive. */
  ping(): Promise<number> {
    if (this.#end !== undefined) return Promise.reject(streamErrorOf(this.#end));
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#writer.control({ type: 'ping', token: this.#pings.add({ resolve, reject }) });
    return promise;
  }

  /**
   * Tells the peer `reason` (snake_case), ends every open stream with `link_closed`, and settles when the underlying stream is
   * destroyed. Streams that should end cleanly are finished first. Throws `bad_reset_code`.
   */
  async close(reason = 'closed'): Promise<void> {
    if (!isWireCode(reason)) throw new CodedError('bad_reset_code', 'A close reason is snake_case with at most 64 characters.');
    this.#finish('closed', `This side closed the session: ${reason}.`, reason);
    await this.#streamClosed;
  }

  /** Ends the session because a newer one took its place. */
  replace(): void {
    this.#finish('link_replaced', `Link session ${this.epoch} was replaced by a newer one.`, 'link_replaced');
  }

  readonly #onChunk = (chunk: Buffer): void => {
    this.#isKept = false;
    this.#onData(chunk);
    // A socket makes memory for each chunk and leaves it to the collector, which then runs for little else during a transfer.
    if (!this.#isKept && this.#stream instanceof Socket) freeChunk(chunk);
  };

  #onData(chunk: Uint8Array): void {
    let used: number;
    try {
      used = this.#decoder.push(chunk, this.#sink);
    } catch (error) {
      if (error instanceof ProtocolViolation) {
        this.#violate(error, chunk);
        return;
      }
      this.#finish('internal_error', `A reader of the link threw: ${messageOf(error)}`, 'internal_error');
      throw error;
    }
    if (used < chunk.length && this.#end === undefined) this.#restarted(chunk.subarray(used));
  }

  #attach(): () => void {
    const lost = (): void => this.#finish('link_lost', 'The byte stream below the session ended without GOAWAY.');
    const failed = (error: Error): void => this.#finish('link_lost', `The byte stream below the session failed: ${error.message}`);
    this.#stream.on('end', lost).on('close', lost).on('error', failed);
    return () => {
      this.#stream.off('data', this.#onChunk).off('end', lost).off('close', lost).off('error', failed);
    };
  }

  #makePort(): WirePort {
    return {
      wake: (wire) => this.#writer.wake(wire),
      grant: (wire, bytes) => {
        if (wire.id !== undefined) this.#writer.control({ type: 'window', stream: wire.id, credit: bytes });
      },
      reset: (wire, code) => {
        if (wire.id !== undefined) this.#writer.control({ type: 'rst', stream: wire.id, code });
      },
      release: (wire) => {
        this.#writer.drop(wire);
        this.#table.remove(wire);
      },
      after: (ms, run) => this.#clock.after(ms, run),
    };
  }

  #makeSink(): FrameSink {
    const ended = (): boolean => this.#end !== undefined;
    return {
      get stopped() {
        return ended();
      },
      dataFrame: (id, length) => {
        this.#current = this.#table.find(id);
        this.#current?.announce(length);
      },
      dataBytes: (bytes, last) => {
        if (last) this.#keepAlive.heard();
        if (this.#current?.gone === false && this.#current.events?.onBytes(bytes) === true) this.#isKept = true;
      },
      frame: (frame) => {
        this.#keepAlive.heard();
        this.#onFrame(frame);
      },
    };
  }

  #onFrame(frame: Frame): void {
    switch (frame.type) {
      case 'open':
        this.#onOpen(frame.stream, frame.payload);
        break;
      case 'head':
        this.#onHead(frame.stream, frame.payload);
        break;
      case 'fin':
        this.#table.find(frame.stream)?.finish();
        break;
      case 'rst':
        this.#table.find(frame.stream)?.resetByPeer(frame.code);
        break;
      case 'window':
        this.#table.find(frame.stream)?.addCredit(frame.credit);
        break;
      case 'ping':
        this.#writer.control({ type: 'pong', token: frame.token });
        break;
      case 'pong':
        this.#pings.answer(frame.token);
        break;
      case 'goaway':
        this.#finish('peer_closed', `The peer closed the session: ${frame.code}.`, undefined, frame.code);
        break;
    }
  }

  #onOpen(id: number, payload: Uint8Array): void {
    this.#table.claimPeerId(id);
    const head = decodeHead(payload);
    if (this.#table.peerOpen >= this.#limits.maxStreams) {
      this.#writer.control({ type: 'rst', stream: id, code: 'too_many_streams' });
      return;
    }
    const wire = new StreamWire(this.#port, 'acceptor', id);
    this.#table.addPeer(wire, id);
    const stream = new LinkStream(wire);
    wire.events?.onHead(head);
    try {
      const result = this.#onStream(stream, head, this);
      if (result instanceof Promise) result.catch(() => stream.reset('handler_failed'));
    } catch {
      stream.reset('handler_failed');
    }
  }

  #onHead(id: number, payload: Uint8Array): void {
    const wire = this.#table.find(id);
    const head = decodeHead(payload);
    if (!this.#table.isLocal(id)) throw new ProtocolViolation('bad_stream_id', `The peer answered stream ${id}, which it opened itself.`);
    wire?.answered(head);
  }

  /** `chunk` is where the breach was found: on a stream without connections it may hold the preamble of a new session. */
  #violate(violation: ProtocolViolation, chunk?: Uint8Array): void {
    const handOver = chunk === undefined ? undefined : this.#onRestart;
    this.#isKept = true;
    this.#finish(violation.code, violation.message, violation.code, undefined, handOver !== undefined);
    if (chunk !== undefined) handOver?.(chunk);
  }

  #restarted(rest: Uint8Array): void {
    this.#isKept = true;
    this.#finish(
      'peer_restarted',
      'The peer began a new session on the same byte stream.',
      undefined,
      undefined,
      this.#onRestart !== undefined,
    );
    this.#onRestart?.(rest);
  }

  #finish(code: LinkEndCode, message: string, goaway?: string, peerCode?: string, keepStream = false): void {
    if (this.#end !== undefined) return;
    if (goaway !== undefined) this.#writer.control({ type: 'goaway', code: goaway });
    // The GOAWAY itself can find the peer stalled and end the session.
    if (this.#end !== undefined) return;
    const end: LinkEnd = peerCode === undefined ? { code, message } : { code, message, peerCode };
    this.#end = end;
    this.#writer.stop();
    this.#keepAlive.stop();
    this.#detach();
    // A peer that said goodbye waits for the end of the stream, which not every stream shows when it is destroyed.
    const graceMs = goaway === undefined && code !== 'peer_closed' ? 0 : CLOSE_TIMEOUT_MS;
    if (!keepStream) this.#streamClosed = endStream(this.#stream, this.#clock, graceMs);
    const error = streamErrorOf(end);
    this.#pings.fail(error);
    for (const wire of this.#table.all()) if (!wire.complete) wire.events?.onFail(error);
    this.#settle(end);
  }
}

/** Gives the memory of a chunk back at once; nobody may look at it any more. */
function freeChunk({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
