import { FRAME_HEADER_BYTES, FRAME_TYPE, type Frame, isWireCode, PING_PAYLOAD_BYTES, RESYNC_BYTE, WINDOW_PAYLOAD_BYTES } from './frame.ts';
import { MAX_CODE_BYTES, MAX_FRAME_BYTES } from './limits.ts';
import { ProtocolViolation } from './reasons.ts';

/** Where decoded frames go. Every method may throw `ProtocolViolation`. */
export interface FrameSink {
  /** True when the session is over: the rest of the input is not looked at. */
  readonly stopped: boolean;
  /** A DATA header came: the payload of `length` bytes follows in parts. */
  dataFrame(stream: number, length: number): void;
  /** A part of the announced payload, a view of the input; `last` ends the frame. */
  dataBytes(bytes: Uint8Array, last: boolean): void;
  /** A whole frame of any other type. Its payload is a view of the input or of a buffer of its own. */
  frame(frame: Frame): void;
}

/** Bounds of the payload length by frame type byte; a type that is not here is unknown. */
const LENGTHS: ReadonlyMap<number, readonly [min: number, max: number, onStream: boolean]> = new Map([
  [FRAME_TYPE.open, [1, MAX_FRAME_BYTES, true]],
  [FRAME_TYPE.head, [1, MAX_FRAME_BYTES, true]],
  [FRAME_TYPE.data, [1, MAX_FRAME_BYTES, true]],
  [FRAME_TYPE.fin, [0, 0, true]],
  [FRAME_TYPE.rst, [1, MAX_CODE_BYTES, true]],
  [FRAME_TYPE.window, [WINDOW_PAYLOAD_BYTES, WINDOW_PAYLOAD_BYTES, true]],
  [FRAME_TYPE.ping, [PING_PAYLOAD_BYTES, PING_PAYLOAD_BYTES, false]],
  [FRAME_TYPE.pong, [PING_PAYLOAD_BYTES, PING_PAYLOAD_BYTES, false]],
  [FRAME_TYPE.goaway, [1, MAX_CODE_BYTES, false]],
]);

function readU32(bytes: Uint8Array, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0;
}

function checkHeader(type: number, stream: number, length: number): void {
  const bounds = LENGTHS.get(type);
  if (bounds === undefined) throw new ProtocolViolation('unknown_frame_type', `The peer sent frame type ${type}.`);
  const [min, max, onStream] = bounds;
  if (length > MAX_FRAME_BYTES) throw new ProtocolViolation('frame_too_large', `The peer announced a frame of ${length} bytes.`);
  if (length < min || length > max) {
    throw new ProtocolViolation('bad_frame_length', `The peer announced ${length} bytes for frame type ${type}.`);
  }
  if ((stream !== 0) !== onStream) {
    throw new ProtocolViolation('bad_stream_id', `The peer sent frame type ${type} on stream ${stream}.`);
  }
}

function readCode(payload: Uint8Array): string {
  const code = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString('latin1');
  if (!isWireCode(code)) throw new ProtocolViolation('bad_code', 'The peer sent a code that is not snake_case ASCII.');
  return code;
}

function readToken(payload: Uint8Array): bigint {
  return (BigInt(readU32(payload, 0)) << 32n) | BigInt(readU32(payload, 4));
}

function toFrame(type: number, stream: number, payload: Uint8Array): Frame {
  switch (type) {
    case FRAME_TYPE.open:
      return { type: 'open', stream, payload };
    case FRAME_TYPE.head:
      return { type: 'head', stream, payload };
    case FRAME_TYPE.fin:
      return { type: 'fin', stream };
    case FRAME_TYPE.rst:
      return { type: 'rst', stream, code: readCode(payload) };
    case FRAME_TYPE.window:
      return { type: 'window', stream, credit: readU32(payload, 0) };
    case FRAME_TYPE.ping:
      return { type: 'ping', token: readToken(payload) };
    case FRAME_TYPE.pong:
      return { type: 'pong', token: readToken(payload) };
    default:
      return { type: 'goaway', code: readCode(payload) };
  }
}

/** Turns bytes, cut anywhere, into frames. It holds at most one header and one payload that is not DATA. */
export class FrameDecoder {
  readonly #header = new Uint8Array(FRAME_HEADER_BYTES);
  #headerBytes = 0;
  #type = 0;
  #stream = 0;
  #missing = 0;
  #payload: Uint8Array | undefined;
  #payloadBytes = 0;

  /**
   * Decodes `input` into `sink` and returns how many bytes were used. Fewer than all: the sink stopped, or the byte at that
   * offset is `RESYNC_BYTE` at a frame boundary. Throws `ProtocolViolation`; the decoder is not used after it.
   */
  push(input: Uint8Array, sink: FrameSink): number {
    let at = 0;
    while (at < input.length && !sink.stopped) {
      if (this.#missing === 0) {
        if (this.#headerBytes === 0 && input[at] === RESYNC_BYTE) return at;
        at = this.#readHeader(input, at, sink);
      } else {
        at = this.#readPayload(input, at, sink);
      }
    }
    return at;
  }

  #readHeader(input: Uint8Array, at: number, sink: FrameSink): number {
    let source = input;
    let offset = at;
    let next = at + FRAME_HEADER_BYTES;
    if (this.#headerBytes > 0 || next > input.length) {
      const take = Math.min(FRAME_HEADER_BYTES - this.#headerBytes, input.length - at);
      this.#header.set(input.subarray(at, at + take), this.#headerBytes);
      this.#headerBytes += take;
      next = at + take;
      if (this.#headerBytes < FRAME_HEADER_BYTES) return next;
      source = this.#header;
      offset = 0;
    }
    this.#headerBytes = 0;
    this.#begin(source[offset] ?? 0, readU32(source, offset + 1), readU32(source, offset + 5), sink);
    return next;
  }

  #begin(type: number, stream: number, length: number, sink: FrameSink): void {
    checkHeader(type, stream, length);
    this.#type = type;
    this.#stream = stream;
    this.#missing = length;
    this.#payload = undefined;
    if (type === FRAME_TYPE.data) sink.dataFrame(stream, length);
    else if (length === 0) sink.frame(toFrame(type, stream, this.#header.subarray(0, 0)));
  }

  #readPayload(input: Uint8Array, at: number, sink: FrameSink): number {
    const take = Math.min(this.#missing, input.length - at);
    const part = input.subarray(at, at + take);
    const whole = this.#payload === undefined && take === this.#missing;
    if (this.#type === FRAME_TYPE.data) {
      this.#missing -= take;
      sink.dataBytes(part, this.#missing === 0);
    } else if (whole) {
      this.#missing = 0;
      sink.frame(toFrame(this.#type, this.#stream, part));
    } else {
      this.#collect(part, sink);
    }
    return at + take;
  }

  #collect(part: Uint8Array, sink: FrameSink): void {
    if (this.#payload === undefined) {
      this.#payload = new Uint8Array(this.#missing);
      this.#payloadBytes = 0;
    }
    this.#payload.set(part, this.#payloadBytes);
    this.#payloadBytes += part.length;
    this.#missing -= part.length;
    if (this.#missing > 0) return;
    const payload = this.#payload;
    this.#payload = undefined;
    sink.frame(toFrame(this.#type, this.#stream, payload));
  }
}
