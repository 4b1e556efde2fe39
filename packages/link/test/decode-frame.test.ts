import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameDecoder, type FrameSink } from '../src/decode-frame.ts';
import { encodeDataHeader, encodeFrame } from '../src/encode-frame.ts';
import type { Frame } from '../src/frame.ts';
import { MAX_CODE_BYTES, MAX_FRAME_BYTES } from '../src/limits.ts';
import { ProtocolViolation } from '../src/reasons.ts';

type Seen = Frame | { readonly type: 'data'; readonly stream: number; readonly payload: Uint8Array };

class Collector implements FrameSink {
  stopped = false;
  readonly seen: Seen[] = [];
  #open: { stream: number; parts: Uint8Array[] } = { stream: 0, parts: [] };

  dataFrame(stream: number): void {
    this.#open = { stream, parts: [] };
  }

  dataBytes(bytes: Uint8Array, last: boolean): void {
    this.#open.parts.push(bytes.slice());
    if (last) this.seen.push({ type: 'data', stream: this.#open.stream, payload: new Uint8Array(Buffer.concat(this.#open.parts)) });
  }

  frame(frame: Frame): void {
    this.seen.push('payload' in frame ? { ...frame, payload: new Uint8Array(frame.payload) } : frame);
  }
}

function header(type: number, stream: number, length: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = type;
  bytes.writeUInt32BE(stream, 1);
  bytes.writeUInt32BE(length, 5);
  return bytes;
}

const u32 = fc.integer({ min: 1, max: 0xffff_ffff });
const code = fc.stringMatching(/^[a-z][a-z0-9_]{0,63}$/);
const payload = fc.uint8Array({ minLength: 1, maxLength: 300 });
const token = fc.bigInt({ min: 0n, max: 0xffff_ffff_ffff_ffffn });
const anyFrame: fc.Arbitrary<Seen> = fc.oneof(
  fc.record({ type: fc.constantFrom('open' as const, 'head' as const, 'data' as const), stream: u32, payload }),
  fc.record({ type: fc.constant('fin' as const), stream: u32 }),
  fc.record({ type: fc.constant('rst' as const), stream: u32, code }),
  fc.record({ type: fc.constant('window' as const), stream: u32, credit: u32 }),
  fc.record({ type: fc.constantFrom('ping' as const, 'pong' as const), token }),
  fc.record({ type: fc.constant('goaway' as const), code }),
);

function bytesOf(frame: Seen): Uint8Array {
  return frame.type === 'data' ? Buffer.concat([encodeDataHeader(frame.stream, frame.payload.length), frame.payload]) : encodeFrame(frame);
}

describe('decoding', () => {
  it('gives back every sequence of frames whatever the cuts', () => {
    fc.assert(
      fc.property(fc.array(anyFrame, { maxLength: 12 }), fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (frames, cuts) => {
        const bytes = Buffer.concat(frames.map(bytesOf));
        const sink = new Collector();
        const decoder = new FrameDecoder();
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const end = at + (cuts[turn % cuts.length] ?? 1);
          const piece = new Uint8Array(bytes.subarray(at, end));
          expect(decoder.push(piece, sink)).toBe(piece.length);
          at = end;
        }
        expect(sink.seen).toEqual(frames);
      }),
    );
  });

  it('takes any bytes without another error than a violation', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), (chunks) => {
        const decoder = new FrameDecoder();
        const sink = new Collector();
        try {
          for (const chunk of chunks) decoder.push(chunk, sink);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolViolation);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes frames that are nearly right without another error than a violation', () => {
    const near = fc.tuple(fc.integer({ min: 0, max: 10 }), fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 12 }));
    fc.assert(
      fc.property(fc.array(near), (headers) => {
        const bytes = Buffer.concat(
          headers.map(([type, stream, length]) => Buffer.concat([header(type, stream, length), Buffer.alloc(length, 97)])),
        );
        try {
          new FrameDecoder().push(bytes, new Collector());
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolViolation);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['type 0', header(0, 1, 1), 'unknown_frame_type'],
    ['type 10', header(10, 1, 1), 'unknown_frame_type'],
    ['type 254', header(254, 1, 1), 'unknown_frame_type'],
    ['DATA one byte over the limit', header(3, 1, MAX_FRAME_BYTES + 1), 'frame_too_large'],
    ['OPEN that claims 4 GiB', header(1, 1, 0xffff_ffff), 'frame_too_large'],
    ['FIN that claims 4 GiB', header(4, 1, 0xffff_ffff), 'frame_too_large'],
    ['empty OPEN', header(1, 1, 0), 'bad_frame_length'],
    ['empty HEAD', header(2, 1, 0), 'bad_frame_length'],
    ['empty DATA', header(3, 1, 0), 'bad_frame_length'],
    ['FIN with a payload', header(4, 1, 1), 'bad_frame_length'],
    ['RST without a code', header(5, 1, 0), 'bad_frame_length'],
    ['RST with a long code', header(5, 1, MAX_CODE_BYTES + 1), 'bad_frame_length'],
    ['WINDOW of 3 bytes', header(6, 1, 3), 'bad_frame_length'],
    ['PING of 7 bytes', header(7, 0, 7), 'bad_frame_length'],
    ['PONG of 9 bytes', header(8, 0, 9), 'bad_frame_length'],
    ['GOAWAY without a code', header(9, 0, 0), 'bad_frame_length'],
    ['DATA on stream 0', header(3, 0, 1), 'bad_stream_id'],
    ['OPEN on stream 0', header(1, 0, 1), 'bad_stream_id'],
    ['PING on stream 1', header(7, 1, 8), 'bad_stream_id'],
    ['GOAWAY on stream 2', header(9, 2, 1), 'bad_stream_id'],
    ['RST with an upper-case code', Buffer.concat([header(5, 1, 2), Buffer.from('Ab')]), 'bad_code'],
    ['RST with a NUL', Buffer.concat([header(5, 1, 2), Buffer.from('a\0')]), 'bad_code'],
    ['GOAWAY with a line end', Buffer.concat([header(9, 0, 2), Buffer.from('a\n')]), 'bad_code'],
  ])('refuses %s', (_name, bytes, expected) => {
    expect(() => new FrameDecoder().push(bytes, new Collector())).toThrowError(expect.objectContaining({ code: expected }));
  });

  it('takes a frame and a code of exactly the largest size', () => {
    const sink = new Collector();
    const decoder = new FrameDecoder();
    decoder.push(Buffer.concat([header(3, 1, MAX_FRAME_BYTES), Buffer.alloc(MAX_FRAME_BYTES)]), sink);
    decoder.push(encodeFrame({ type: 'rst', stream: 1, code: 'a'.repeat(MAX_CODE_BYTES) }), sink);
    expect(sink.seen.map((frame) => frame.type)).toEqual(['data', 'rst']);
  });

  it('stops at the resync byte at a frame boundary and nowhere else', () => {
    const sink = new Collector();
    const inside = Buffer.concat([header(3, 1, 2), Buffer.from([0xff, 0xff])]);
    expect(new FrameDecoder().push(Buffer.concat([inside, Buffer.from([0xff, 1])]), sink)).toBe(inside.length);
    expect(sink.seen).toHaveLength(1);
  });

  it('looks at nothing more once the sink has stopped', () => {
    const sink = new Collector();
    sink.frame = () => {
      sink.stopped = true;
    };
    const fin = encodeFrame({ type: 'fin', stream: 1 });
    expect(new FrameDecoder().push(Buffer.concat([fin, header(0, 0, 0)]), sink)).toBe(fin.length);
  });
});
