import { encodeDataHeader } from '../encode-frame.ts';
import type { Frame } from '../frame.ts';
import { MAX_FRAME_BYTES, STREAM_WINDOW_BYTES } from '../limits.ts';

type Sent = readonly (Frame | Uint8Array)[];
/** Name, what a dialler sends that has opened no stream yet, and the code that its session ends with. */
export type Breach = readonly [name: string, frames: Sent, code: string];

/** What depends on the session that is attacked. */
export interface BreachedSession {
  /** Head of a stream whose acceptor never reads. */
  readonly head: unknown;
  /** Id of a stream of the listener's that it never opened, even. */
  readonly foreign: number;
}

export const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

/** The bytes of a DATA frame. */
export function dataFrame(stream: number, payload: Uint8Array): Uint8Array {
  return Buffer.concat([encodeDataHeader(stream, payload.length), payload]);
}

export const fin = (stream: number): Frame => ({ type: 'fin', stream });
export const window = (stream: number, credit: number): Frame => ({ type: 'window', stream, credit });
export const FULL = Buffer.alloc(MAX_FRAME_BYTES);
/** All that a stream may be sent before its reader has taken anything. */
export const fullWindow = (stream: number): Uint8Array[] =>
  Array.from({ length: STREAM_WINDOW_BYTES / MAX_FRAME_BYTES }, () => dataFrame(stream, FULL));

/** Every breach of the format by a peer that has dialled. */
export function breaches({ head, foreign }: BreachedSession): Breach[] {
  const open = (stream: number): Frame => ({ type: 'open', stream, payload: json(head) });
  return [
    ['an unknown frame type', [Buffer.alloc(9)], 'unknown_frame_type'],
    ['an oversized frame', [Buffer.from([3, 0, 0, 0, 1, 0, 1, 0, 1])], 'frame_too_large'],
    ['a frame of the largest length there is', [Buffer.from([1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff])], 'frame_too_large'],
    ['a frame of a wrong length', [Buffer.from([4, 0, 0, 0, 1, 0, 0, 0, 1, 0])], 'bad_frame_length'],
    ['OPEN with the parity of the listener', [open(foreign)], 'bad_stream_id'],
    ['OPEN that leaves out an id', [open(3)], 'bad_stream_id'],
    ['OPEN of the same id twice', [open(1), open(1)], 'bad_stream_id'],
    ['HEAD for a stream of its own', [open(1), { type: 'head', stream: 1, payload: json({}) }], 'bad_stream_id'],
    ['DATA for a stream never opened', [dataFrame(1, json(1))], 'stream_never_opened'],
    ['DATA for a stream the listener never opened', [dataFrame(foreign, json(1))], 'stream_never_opened'],
    ['HEAD for a stream never opened', [{ type: 'head', stream: foreign, payload: json({}) }], 'stream_never_opened'],
    ['FIN for a stream never opened', [fin(1)], 'stream_never_opened'],
    ['RST for a stream never opened', [{ type: 'rst', stream: 5, code: 'x' }], 'stream_never_opened'],
    ['WINDOW for a stream never opened', [window(foreign, 1)], 'stream_never_opened'],
    ['data beyond the window', [open(1), ...fullWindow(1), dataFrame(1, Buffer.alloc(1))], 'window_exceeded'],
    ['a grant beyond the window', [open(1), window(1, 1)], 'credit_overflow'],
    ['a grant of nothing', [open(1), window(1, 0)], 'credit_overflow'],
    ['the largest grant', [open(1), window(1, 0xffff_ffff)], 'credit_overflow'],
    ['a head that is not JSON', [{ type: 'open', stream: 1, payload: Buffer.from('{') }], 'bad_head'],
    ['a head that is not UTF-8', [{ type: 'open', stream: 1, payload: Buffer.from([0x22, 0xc3, 0x22]) }], 'bad_head'],
    ['data after FIN', [open(1), fin(1), dataFrame(1, json(1))], 'data_after_fin'],
    ['FIN after FIN', [open(1), fin(1), fin(1)], 'data_after_fin'],
    ['a code that is no code', [open(1), { type: 'rst', stream: 1, code: 'No!' }], 'bad_code'],
    ['an answer to no PING', [{ type: 'pong', token: 99n }], 'unexpected_pong'],
  ];
}

/** Breaches on a stream that the listener has opened and that has no answer yet. */
export const ANSWER_BREACHES: readonly (readonly [name: string, frames: (id: number) => Sent, code: string])[] = [
  ['bytes before the answering head', (id) => [dataFrame(id, json(1))], 'head_order'],
  ['FIN before the answering head', (id) => [fin(id)], 'head_order'],
  [
    'a second answering head',
    (id) => [
      { type: 'head', stream: id, payload: json(1) },
      { type: 'head', stream: id, payload: json(2) },
    ],
    'head_order',
  ],
  ['an answering head that is not JSON', (id) => [{ type: 'head', stream: id, payload: Buffer.from('nope') }], 'bad_head'],
];

/** Streams opened one after another, from the first id of a dialler on. */
export const opens = (count: number, head: unknown): Frame[] =>
  Array.from({ length: count }, (_, index) => ({ type: 'open', stream: 1 + 2 * index, payload: json(head) }));

/** 10,000 PINGs, for a peer that reads no answer. */
export const PING_FLOOD: Uint8Array = Buffer.concat(
  Array.from({ length: 10_000 }, () => Buffer.from([7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1])),
);
