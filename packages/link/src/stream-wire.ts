import type { CodedError } from '@firecrew/base';
import { MAX_FRAME_BYTES, STREAM_WINDOW_BYTES } from './limits.ts';
import { Outbox } from './outbox.ts';
import { ProtocolViolation, StreamResetError } from './reasons.ts';

/** What a stream asks of its session. */
export interface WirePort {
  /** There may be something to send. */
  wake(wire: StreamWire): void;
  /** Tells the peer that this stream is over. */
  reset(wire: StreamWire, code: string): void;
  /** Returns credit to the peer. */
  grant(wire: StreamWire, bytes: number): void;
  /** The stream takes no room any more. */
  release(wire: StreamWire): void;
  /** Runs `run` once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
}

/** What a session tells the stream object above the wire. */
export interface WireEvents {
  onHead(head: unknown): void;
  /** Says whether it keeps the part, a view of the input, beyond the call. */
  onBytes(part: Uint8Array): boolean;
  onEnd(): void;
  onFail(error: CodedError): void;
}

/**
 * The protocol state of one stream, without Node's stream machinery.
 *
 *   opener:    OPEN -> (DATA* -> FIN)      acceptor: HEAD -> (DATA* -> FIN)
 *   each direction:  head unsent -> open -> FIN sent
 *   complete = FIN sent and FIN received; gone = reset by either side, or the session ended
 */
export class StreamWire {
  readonly port: WirePort;
  readonly role: 'opener' | 'acceptor';
  readonly outbox = new Outbox();
  /** Given when OPEN leaves, so that ids on the wire have no gaps. */
  id: number | undefined;
  events: WireEvents | undefined;
  credit = STREAM_WINDOW_BYTES;
  /** Bytes received and bytes granted beyond the first window. */
  received = 0;
  granted = 0;
  headToSend: Uint8Array | undefined;
  headSent = false;
  headReceived = false;
  finWanted: (() => void) | undefined;
  finSent = false;
  finReceived = false;
  gone = false;
  /** True while the stream waits for its turn to send. */
  queued = false;

  constructor(port: WirePort, role: 'opener' | 'acceptor', id: number | undefined) {
    this.port = port;
    this.role = role;
    this.id = id;
    this.headReceived = role === 'acceptor';
  }

  get complete(): boolean {
    return this.finSent && this.finReceived;
  }

  /** Whether a turn would put a frame on the wire. */
  get sendable(): boolean {
    if (this.gone) return false;
    if (!this.headSent) return this.headToSend !== undefined;
    if (this.outbox.bytes > 0) return this.credit > 0;
    return this.finWanted !== undefined && !this.finSent;
  }

  /** Payload bytes that the next DATA frame may carry. */
  get sendableBytes(): number {
    return Math.min(this.credit, MAX_FRAME_BYTES);
  }

  /** Checks an announced DATA frame against order and window, and counts it. */
  announce(length: number): void {
    this.checkOpen();
    if (this.received + length > STREAM_WINDOW_BYTES + this.granted) {
      throw new ProtocolViolation('window_exceeded', `The peer sent more than its credit on stream ${this.id}.`);
    }
    this.received += length;
  }

  /** The peer may still send on this stream. */
  checkOpen(): void {
    if (!this.headReceived) throw new ProtocolViolation('head_order', `The peer sent bytes before its head on stream ${this.id}.`);
    if (this.finReceived) throw new ProtocolViolation('data_after_fin', `The peer sent more after FIN on stream ${this.id}.`);
  }

  /** Takes the peer's FIN. */
  finish(): void {
    this.checkOpen();
    this.finReceived = true;
    this.events?.onEnd();
  }

  /** Takes the peer's RST. */
  resetByPeer(code: string): void {
    this.gone = true;
    this.events?.onFail(new StreamResetError(code, 'peer', this.id));
  }

  /** Takes the peer's head on a stream this side opened. */
  answered(head: unknown): void {
    if (this.headReceived) throw new ProtocolViolation('head_order', `The peer sent a second head on stream ${this.id}.`);
    this.headReceived = true;
    this.events?.onHead(head);
  }

  /** Takes credit from the peer. */
  addCredit(credit: number): void {
    if (credit === 0 || this.credit + credit > STREAM_WINDOW_BYTES) {
      throw new ProtocolViolation('credit_overflow', `The peer granted ${credit} bytes beyond the window of stream ${this.id}.`);
    }
    this.credit += credit;
    this.port.wake(this);
  }
}
