import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ConnectHeadResult, createConnectHeadReader, HEAD_MAX_BYTES, HEADER_COUNT_MAX, REQUEST_LINE_MAX } from '../src/index.ts';
import { METHOD_MAX_BYTES } from '../src/read-connect-head.ts';

const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));
const LINE = 'CONNECT api.example.test:443 HTTP/1.1\r\n';
const HOST = 'Host: x\r\n';

function read(text: string | Uint8Array, sizes: readonly number[] = []): ConnectHeadResult {
  const bytes = typeof text === 'string' ? latin1(text) : text;
  const reader = createConnectHeadReader();
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    const result = reader.push(bytes.subarray(at, at + size));
    at += size;
    if (result.state === 'request') return { ...result, rest: Uint8Array.from([...result.rest, ...bytes.subarray(at)]) };
    if (result.state === 'malformed' || at >= bytes.length) return result;
  }
  return { state: 'need-more' };
}

describe('the head of a CONNECT', () => {
  it('is read, and the bytes after it are handed back', () => {
    expect(read(`${LINE}${HOST}\r\nrest`)).toEqual({ state: 'request', rawHost: 'api.example.test', port: 443, rest: latin1('rest') });
  });

  it.each([
    ['\x16\x03\x01', 'not_http'],
    ['\x05\x01\x00', 'not_http'],
    ['A'.repeat(32), 'not_http'],
    [`GET http://x.test/ HTTP/1.1\r\n${HOST}\r\n`, 'plain_http'],
    [`GET / HTTP/1.1\r\n${HOST}\r\n`, 'method_not_connect'],
    [`connect a.test:443 HTTP/1.1\r\n${HOST}\r\n`, 'method_not_connect'],
    ['CONNECT a.test:443 HTTP/2.0\r\n', 'bad_version'],
    ['CONNECT a.test:443\r\n', 'bad_request_line'],
    ['CON(ECT a.test:443 HTTP/1.1\r\n', 'bad_request_line'],
    [`CONNECT a.test HTTP/1.1\r\n${HOST}\r\n`, 'missing_port'],
    [`CONNECT [::1] HTTP/1.1\r\n${HOST}\r\n`, 'missing_port'],
    [`CONNECT a.test:0443 HTTP/1.1\r\n${HOST}\r\n`, 'bad_port'],
    [`${LINE}\r\n`, 'missing_host'],
    [`${LINE}${HOST}${HOST}\r\n`, 'repeated_host'],
    [`${LINE}${HOST}Content-Length: 5\r\n\r\n`, 'body_not_allowed'],
    [`${LINE}${HOST}Transfer-Encoding: chunked\r\n\r\n`, 'body_not_allowed'],
    [`${LINE}${HOST}X : 1\r\n\r\n`, 'bad_header'],
    [`${LINE}${HOST}X: 1\r\n folded\r\n\r\n`, 'folded_header'],
    [`${LINE}${HOST}X: a\0b\r\n\r\n`, 'control_character'],
    [`${LINE}${HOST}X: a\x7fb\r\n\r\n`, 'control_character'],
    [`${LINE}${HOST}X\r\n\r\n`, 'bad_header'],
    ['CONNECT\ta.test', 'bad_request_line'],
    [`${LINE}${HOST}X: a\rb\r\n\r\n`, 'bare_carriage_return'],
    [`${LINE}${HOST}\n`, 'bare_line_feed'],
    ['\r\n\r\nCONNECT', 'bad_request_line'],
  ])('%j is malformed: %s', (text, reason) => {
    expect(read(text)).toEqual({ state: 'malformed', reason });
  });

  it('is read to its end before a fault in it is reported, so that the answer is not lost', () => {
    const reader = createConnectHeadReader();
    expect(reader.push(latin1(`CONNECT a.test HTTP/1.1\r\n${HOST}`))).toEqual({ state: 'need-more' });
    expect(reader.push(latin1('\r\n'))).toEqual({ state: 'malformed', reason: 'missing_port' });
  });

  it.each(['CONNECT a.test:443 HTTP/1.1 x', 'CONNECT a.test :443 HTTP/1.1'])('with a word too many is read to its end: %s', (line) => {
    const reader = createConnectHeadReader();
    expect(reader.push(latin1(`${line}\r\n${HOST}`))).toEqual({ state: 'need-more' });
    expect(reader.push(latin1('\r\n'))).toEqual({ state: 'malformed', reason: 'bad_request_line' });
  });

  it('that ends early is malformed, also after a fault', () => {
    const reader = createConnectHeadReader();
    reader.push(latin1(LINE));
    expect(reader.end()).toEqual({ state: 'malformed', reason: 'truncated_head' });
    const faulty = createConnectHeadReader();
    faulty.push(latin1(`GET / HTTP/1.1\r\n${HOST}`));
    expect(faulty.end()).toEqual({ state: 'malformed', reason: 'method_not_connect' });
  });

  it('accepts tabs and bytes above ASCII in the value of a header', () => {
    expect(read(`${LINE}${HOST}X:\ta\tb\x80\r\n\r\n`).state).toBe('request');
  });

  it('is of another protocol when its first bytes hold a control character, and read to its end when a later one does', () => {
    const start = (bytes: number) => 'CONNECT '.padEnd(bytes, 'a');
    expect(read(`${start(METHOD_MAX_BYTES - 1)}\x01`)).toEqual({ state: 'malformed', reason: 'not_http' });
    const late = `${start(METHOD_MAX_BYTES)}\x01:443 HTTP/1.1\r\n${HOST}`;
    expect(read(late)).toEqual({ state: 'need-more' });
    expect(read(`${late}\r\n`)).toEqual({ state: 'malformed', reason: 'control_character' });
  });

  it('may be HTTP while a space stands in its first bytes, also as the very first', () => {
    expect(read(` ${'A'.repeat(METHOD_MAX_BYTES - 1)}`)).toEqual({ state: 'need-more' });
  });

  it('with a header too many is refused at that header', () => {
    const reader = createConnectHeadReader();
    expect(reader.push(latin1(`${LINE}${HOST}${'X: y\r\n'.repeat(HEADER_COUNT_MAX - 1)}`))).toEqual({ state: 'need-more' });
    expect(reader.push(latin1('X: y\r\n'))).toEqual({ state: 'malformed', reason: 'too_many_headers' });
  });

  it('accepts a content length of zero and a first empty line', () => {
    expect(read(`\r\n${LINE}${HOST}Content-Length: 0\r\n\r\n`).state).toBe('request');
  });

  it('keeps every limit at its edge', () => {
    expect([REQUEST_LINE_MAX, HEAD_MAX_BYTES, HEADER_COUNT_MAX, METHOD_MAX_BYTES]).toEqual([8192, 32_768, 100, 32]);
    const line = (length: number) => `X:${'p'.repeat(length - 2)}\r\n`;
    expect(read(`${LINE}${HOST}${line(REQUEST_LINE_MAX)}\r\n`).state).toBe('request');
    expect(read(`${LINE}${HOST}${line(REQUEST_LINE_MAX + 1)}\r\n`)).toMatchObject({ reason: 'header_line_too_long' });
    const target = (length: number) => `CONNECT ${'a'.repeat(length - 'CONNECT :443 HTTP/1.1'.length)}:443 HTTP/1.1\r\n${HOST}\r\n`;
    expect(read(target(REQUEST_LINE_MAX)).state).toBe('request');
    expect(read(target(REQUEST_LINE_MAX + 1))).toMatchObject({ reason: 'request_line_too_long' });
    expect(read(`${LINE}${HOST}${'X: y\r\n'.repeat(HEADER_COUNT_MAX - 1)}\r\n`).state).toBe('request');
    expect(read(`${LINE}${HOST}${'X: y\r\n'.repeat(HEADER_COUNT_MAX)}\r\n`)).toMatchObject({ reason: 'too_many_headers' });
    const pad = HEAD_MAX_BYTES - LINE.length - HOST.length - 2 - 5 * 6002;
    const full = `${LINE}${HOST}${line(6000).repeat(5)}${line(pad - 2)}\r\n`;
    expect(full.length).toBe(HEAD_MAX_BYTES);
    expect(read(full).state).toBe('request');
    expect(read(`${LINE}${HOST}${line(6000).repeat(5)}${line(pad - 1)}\r\n`)).toMatchObject({ reason: 'head_too_large' });
  });

  const piece = fc.constantFrom(
    'CONNECT ',
    'GET ',
    'a.test',
    ':443',
    ' HTTP/1.1',
    '\r\n',
    '\n',
    '\r',
    'Host: x',
    'X: y',
    ' ',
    '\t',
    '\0',
    '[::1]',
    'é',
    '@',
    '\x16',
  );
  const likely = fc.oneof(
    fc.array(piece, { maxLength: 20 }).map((parts) => latin1(parts.join(''))),
    fc.array(piece, { maxLength: 6 }).map((parts) => latin1(`${LINE}${HOST}${parts.join('')}\r\n\r\n`)),
    fc.uint8Array({ maxLength: 200 }),
  );

  it('gives the same result however it is cut, and never throws', () => {
    fc.assert(
      fc.property(likely, fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 40 }), (bytes, sizes) => {
        const whole = read(bytes);
        expect(read(bytes, sizes)).toEqual(whole);
        expect(read(bytes, new Array<number>(bytes.length).fill(1))).toEqual(whole);
      }),
      { numRuns: 2000 },
    );
  });

  it('of a request holds the target as it stands in the bytes', () => {
    fc.assert(
      fc.property(likely, (bytes) => {
        const result = read(bytes);
        if (result.state !== 'request') return;
        const text = String.fromCharCode(...bytes).replace(/^\r\n/, '');
        expect(text.startsWith(`CONNECT ${result.rawHost}:${result.port} HTTP/1.`)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
