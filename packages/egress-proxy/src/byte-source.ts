import type { Duplex } from 'node:stream';

/** What comes next from a stream: bytes, its orderly end, or its loss (error, reset, closed without an end). */
export type ByteEvent = { readonly kind: 'data'; readonly chunk: Uint8Array } | { readonly kind: 'end' } | { readonly kind: 'gone' };

/**
 * The only reader of one stream. It guards the stream against unhandled errors from the moment it exists, takes one chunk at a time and
 * keeps the stream paused in between, so that the peer feels back-pressure while nobody asks.
 */
export class ByteSource {
  readonly stream: Duplex;
  private readonly queue: Uint8Array[] = [];
  private final: ByteEvent | undefined;
  private waiter: ((event: ByteEvent) => void) | undefined;
  private discarding: { left: number; readonly done: () => void } | undefined;

  constructor(stream: Duplex) {
    this.stream = stream;
    stream.pause();
    stream.on('error', () => this.finish({ kind: 'gone' }));
    stream.on('close', () => this.finish({ kind: 'gone' }));
    stream.on('end', () => this.finish({ kind: 'end' }));
    stream.on('data', (chunk: Uint8Array) => this.take(chunk));
    if (stream.destroyed) this.finish({ kind: 'gone' });
  }

  /** Puts bytes back in front, to be read again by the next step. */
  unread(chunk: Uint8Array): void {
    if (chunk.length > 0) this.queue.unshift(chunk);
  }

  /** The next event. One caller at a time; a caller that gave up must not be followed by another. */
  next(): Promise<ByteEvent> {
    const chunk = this.queue.shift();
    if (chunk !== undefined) return Promise.resolve({ kind: 'data', chunk });
    if (this.final !== undefined) return Promise.resolve(this.final);
    return new Promise((resolve) => {
      this.waiter = resolve;
      this.stream.resume();
    });
  }

  /** Reads and drops what still comes, until the end, the loss, or `bytes` are over. */
  discard(bytes: number): Promise<void> {
    const queued = this.queue.splice(0).reduce((sum, chunk) => sum + chunk.length, 0);
    if (this.final !== undefined || queued >= bytes) return Promise.resolve();
    return new Promise((done) => {
      this.discarding = { left: bytes - queued, done };
      this.stream.resume();
    });
  }

  private take(chunk: Uint8Array): void {
    if (this.discarding !== undefined) {
      this.discarding.left -= chunk.length;
      if (this.discarding.left > 0) return;
      this.stream.pause();
      this.discarding.done();
      return;
    }
    this.stream.pause();
    this.queue.push(chunk);
    const waiter = this.waiter;
    this.waiter = undefined;
    const first = waiter === undefined ? undefined : this.queue.shift();
    if (first !== undefined) waiter?.({ kind: 'data', chunk: first });
  }

  private finish(event: ByteEvent): void {
    if (this.final !== undefined) return;
    this.final = event;
    this.discarding?.done();
    const waiter = this.waiter;
    this.waiter = undefined;
    waiter?.(event);
  }
}
