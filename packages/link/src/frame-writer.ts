import type { Duplex } from 'node:stream';
import { encodeDataHeader, encodeFrame } from './encode-frame.ts';
import type { Frame } from './frame.ts';
import { MAX_SEND_BUFFER_BYTES, SEND_BUFFER_BYTES } from './limits.ts';
import type { StreamWire } from './stream-wire.ts';

export interface FrameWriterEvents {
  /** Numbers a stream of this side, whose OPEN leaves now. */
  nextId(wire: StreamWire): number;
  /** Answers pile up: the peer does not read. */
  onStalledPeer(): void;
}

/**
 * Puts frames on the underlying stream. Streams with something to send take turns of one frame each; a stream without credit
 * is not in the queue, so it holds up no other. Data stops while `SEND_BUFFER_BYTES` are unsent; control frames do not wait.
 */
export class FrameWriter {
  readonly #stream: Duplex;
  readonly #events: FrameWriterEvents;
  readonly #queue = new Set<StreamWire>();
  readonly #onDrain = (): void => this.#pump();
  #corked = false;
  #pumping = false;
  #stopped = false;
  #stalled = false;

  constructor(stream: Duplex, events: FrameWriterEvents) {
    this.#stream = stream;
    this.#events = events;
    stream.on('drain', this.#onDrain);
  }

  /** Sends a small frame ahead of all data that has not been handed over. */
  control(frame: Frame): void {
    if (this.#stopped || this.#stalled) return;
    this.#write(encodeFrame(frame));
    this.#stalled = this.#stream.writableLength > MAX_SEND_BUFFER_BYTES;
    if (this.#stalled) this.#events.onStalledPeer();
  }

  /** The stream may have something to send. */
  wake(wire: StreamWire): void {
    if (this.#stopped || wire.queued || !wire.sendable) return;
    wire.queued = true;
    this.#queue.add(wire);
    this.#pump();
  }

  /** Takes the stream out of the queue. */
  drop(wire: StreamWire): void {
    wire.queued = false;
    this.#queue.delete(wire);
  }

  /** Sends nothing more. What was written leaves. */
  stop(): void {
    this.#stopped = true;
    this.#queue.clear();
    this.#stream.off('drain', this.#onDrain);
  }

  get #congested(): boolean {
    return this.#stream.writableNeedDrain && this.#stream.writableLength >= SEND_BUFFER_BYTES;
  }

  #pump(): void {
    // A turn can call back into the caller, who writes again; the loop below sees what that adds.
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      for (const wire of this.#queue) {
        if (this.#stopped || this.#congested) break;
        this.#queue.delete(wire);
        this.#turn(wire);
        wire.queued = !this.#stopped && wire.sendable;
        if (wire.queued) this.#queue.add(wire);
      }
    } finally {
      this.#pumping = false;
    }
  }

  #turn(wire: StreamWire): void {
    if (!wire.sendable) return;
    if (!wire.headSent) this.#sendHead(wire);
    else if (wire.outbox.bytes > 0) this.#sendData(wire, wire.id ?? 0);
    else this.#sendFin(wire, wire.id ?? 0);
  }

  #sendHead(wire: StreamWire): void {
    const payload = wire.headToSend ?? new Uint8Array(0);
    wire.headToSend = undefined;
    wire.headSent = true;
    wire.id ??= this.#events.nextId(wire);
    this.#write(encodeFrame({ type: wire.role === 'opener' ? 'open' : 'head', stream: wire.id, payload }));
  }

  #sendData(wire: StreamWire, id: number): void {
    const { parts, bytes, last } = wire.outbox.take(wire.sendableBytes);
    wire.credit -= bytes;
    this.#write(encodeDataHeader(id, bytes));
    // The caller may use its memory again when its write is done, so that waits until the bytes have left.
    const done = (error?: Error | null): void => {
      // A failed write ends the session, and that settles the outbox with the session's own error.
      if (error === undefined || error === null) wire.outbox.settle();
    };
    const end = parts.length - 1;
    parts.forEach((part, index) => {
      this.#write(part, last && index === end ? done : undefined);
    });
  }

  #sendFin(wire: StreamWire, id: number): void {
    this.#write(encodeFrame({ type: 'fin', stream: id }));
    wire.finSent = true;
    wire.finWanted?.();
  }

  #write(bytes: Uint8Array, done?: (error?: Error | null) => void): void {
    if (!this.#corked) {
      this.#corked = true;
      this.#stream.cork();
      process.nextTick(() => {
        this.#corked = false;
        this.#stream.uncork();
      });
    }
    this.#stream.write(bytes, done);
  }
}
