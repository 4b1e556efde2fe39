import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventStreamParser, MAX_STREAM_MESSAGE_CHARS } from '../src/parse-event-stream.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** [what, the stream, the messages] */
const STREAMS: readonly (readonly [string, string, readonly { id?: string; event: string; data: string }[]])[] = [
  ['a message', 'id: 7\nevent: mission\ndata: {"a":1}\n\n', [{ id: '7', event: 'mission', data: '{"a":1}' }]],
  ['a message without a name', 'data: x\n\n', [{ event: 'message', data: 'x' }]],
  ['data of several lines', 'data: a\ndata: b\ndata\n\n', [{ event: 'message', data: 'a\nb\n' }]],
  ['comments as nothing', ': heartbeat\n\n: again\n\n', []],
  ['CR LF', 'id: 1\r\ndata: x\r\n\r\n', [{ id: '1', event: 'message', data: 'x' }]],
  [
    'lone CR',
    'data: x\r\rdata: y\r\r\n',
    [
      { event: 'message', data: 'x' },
      { event: 'message', data: 'y' },
    ],
  ],
  ['only one blank as no part of the value', 'data:  x\n\n', [{ event: 'message', data: ' x' }]],
  [
    'an id that stays for later messages',
    'id: 3\ndata: a\n\ndata: b\n\n',
    [
      { id: '3', event: 'message', data: 'a' },
      { id: '3', event: 'message', data: 'b' },
    ],
  ],
  ['an id with NUL as none', 'id: a\0b\ndata: x\n\n', [{ event: 'message', data: 'x' }]],
  [
    'a name that is gone after its message',
    'event: log\ndata: a\n\ndata: b\n\n',
    [
      { event: 'log', data: 'a' },
      { event: 'message', data: 'b' },
    ],
  ],
  ['an unfinished message as nothing', 'data: x\n', []],
  ['unknown fields as nothing', 'retry: 5\nwhatever\ndata: x\n\n', [{ event: 'message', data: 'x' }]],
];

describe('a stream', () => {
  it.each(STREAMS)('has %s', (_what, stream, messages) => {
    expect(new EventStreamParser().push(bytes(stream))).toEqual(messages.map((message) => ({ id: undefined, ...message })));
  });

  it('gives the same messages wherever it is cut, also inside a character', () => {
    const text = 'id: 1\nevent: log\ndata: {"text":"ä€😀"}\r\n\r\n: beat\n\nid: 2\ndata: b\ndata: c\n\n';
    const whole = bytes(text);
    const expected = new EventStreamParser().push(whole);
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length), { maxLength: 12 }), (cuts) => {
        const parser = new EventStreamParser();
        const edges = [0, ...[...cuts].sort((a, b) => a - b), whole.length];
        const messages = edges.slice(1).flatMap((end, index) => parser.push(whole.subarray(edges[index] ?? 0, end)));
        expect(messages).toEqual(expected);
      }),
    );
  });

  it('is given up when one message never ends', () => {
    const parser = new EventStreamParser();
    const piece = bytes('x'.repeat(1024 * 1024));
    parser.push(bytes('data: '));
    expect(() => {
      for (let at = 0; at <= MAX_STREAM_MESSAGE_CHARS; at += piece.length) parser.push(piece);
    }).toThrow(expect.objectContaining({ code: 'bad_reply' }));
  });
});
