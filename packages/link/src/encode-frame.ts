import { FRAME_HEADER_BYTES, FRAME_TYPE, type Frame, PING_PAYLOAD_BYTES, RESYNC_BYTE, WINDOW_PAYLOAD_BYTES } from './frame.ts';
import { MAX_FRAME_BYTES } from './limits.ts';

function frameBytes(type: number, stream: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + length);
  bytes[0] = type;
  bytes.writeUInt32BE(stream, 1);
  bytes.writeUInt32BE(length, 5);
  return bytes;
}

/** The header of a DATA frame of `length` bytes; the payload follows as it is, without a copy. */
export function encodeDataHeader(stream: number, length: number): Uint8Array {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
  bytes[0] = FRAME_TYPE.data;
  bytes.writeUInt32BE(stream, 1);
  bytes.writeUInt32BE(length, 5);
  return bytes;
}

function withPayload(type: number, stream: number, payload: Uint8Array): Uint8Array {
  const bytes = frameBytes(type, stream, payload.length);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

/** The bytes of one whole frame. The caller keeps to the limits; the decoder of the peer checks them. */
export function encodeFrame(frame: Frame): Uint8Array {
  switch (frame.type) {
    case 'open':
    case 'head':
      return withPayload(FRAME_TYPE[frame.type], frame.stream, frame.payload);
    case 'fin':
      return frameBytes(FRAME_TYPE.fin, frame.stream, 0);
    case 'rst':
      return withPayload(FRAME_TYPE.rst, frame.stream, Buffer.from(frame.code, 'latin1'));
    case 'window': {
      const bytes = frameBytes(FRAME_TYPE.window, frame.stream, WINDOW_PAYLOAD_BYTES);
      bytes.writeUInt32BE(frame.credit, FRAME_HEADER_BYTES);
      return bytes;
    }
    case 'ping':
    case 'pong': {
      const bytes = frameBytes(FRAME_TYPE[frame.type], 0, PING_PAYLOAD_BYTES);
      bytes.writeBigUInt64BE(frame.token, FRAME_HEADER_BYTES);
      return bytes;
    }
    case 'goaway':
      return withPayload(FRAME_TYPE.goaway, 0, Buffer.from(frame.code, 'latin1'));
  }
}

/** Padding that completes any half-sent frame of an earlier process and then shows itself at a frame boundary. */
export function resyncPadding(): Uint8Array {
  return Buffer.alloc(FRAME_HEADER_BYTES + MAX_FRAME_BYTES, RESYNC_BYTE);
}
