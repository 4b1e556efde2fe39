import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createProxyAnswerReader,
  decideProxyStatus,
  PROXY_ANSWER_LINES_MAX,
  PROXY_ANSWER_MAX_BYTES,
  type ProxyAnswer,
} from '../src/index.ts';

const read = (text: string): ProxyAnswer => createProxyAnswerReader().push(Buffer.from(text, 'latin1'));
const line = (size: number) => `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(size)}\r\n\r\n`;
const OVERHEAD = line(0).length;

describe("the answer of the operator's proxy", () => {
  it.each([
    ['HTTP/1.1 200 Connection established\r\n\r\n', 200, ''],
    ['HTTP/1.0 200 OK\r\nVia: 1.1 p\r\nX-Empty:\r\n\r\n', 200, ''],
    ['HTTP/1.1 200\r\n\r\n', 200, ''],
    ['HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="x"\r\n\r\n<html>', 407, '<html>'],
    ['HTTP/1.1 200 OK\r\n\r\nSSH-2.0', 200, 'SSH-2.0'],
    [line(PROXY_ANSWER_MAX_BYTES - OVERHEAD), 200, ''],
  ])('%j is one', (text, status, rest) => {
    const answer = read(text);
    expect(answer).toMatchObject({ state: 'answer', status });
    expect(answer.state === 'answer' ? Buffer.from(answer.rest).toString() : '').toBe(rest);
  });

  it.each([
    ['SSH-2.0-OpenSSH_9.2\r\n'],
    ['HTTP/2 200 OK\r\n\r\n'],
    ['http/1.1 200 OK\r\n\r\n'],
    ['HTTP/1.1 20 OK\r\n\r\n'],
    ['HTTP/1.1 2000 OK\r\n\r\n'],
    ['HTTP/1.1  200 OK\r\n\r\n'],
    ['HTTP/1.1 200 OK\n\n'],
    ['HTTP/1.1 200 OK\r\nno header\r\n\r\n'],
    ['HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n'],
    ['HTTP/1.1 200 OK\r\nA : b\r\n\r\n'],
    ['HTTP/1.1 200 O\0K\r\n\r\n'],
    ['HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n'],
    ['\r\nHTTP/1.1 200 OK\r\n\r\n'],
    [line(PROXY_ANSWER_MAX_BYTES - OVERHEAD + 1)],
    [`HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(PROXY_ANSWER_LINES_MAX)}\r\n`],
    ['x'.repeat(PROXY_ANSWER_MAX_BYTES + 1)],
  ])('%j is none', (text) => {
    expect(read(text)).toEqual({ state: 'malformed' });
  });

  it('is read the same however it is cut, never throws, and stays what it was', () => {
    const parts = fc.array(fc.constantFrom('HTTP/1.1 200 OK', 'HTTP/1.1 403 No', '\r\n', '\n', '\r', 'A: b', ':', '\0', '\xff', ' '), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(parts, fc.integer({ min: 1, max: 7 }), (texts, size) => {
        const bytes = Buffer.from(texts.join(''), 'latin1');
        const whole = createProxyAnswerReader().push(bytes);
        const reader = createProxyAnswerReader();
        let cut: ProxyAnswer = { state: 'need-more' };
        for (let at = 0; at < bytes.length && cut.state === 'need-more'; at += size) cut = reader.push(bytes.subarray(at, at + size));
        expect(cut.state).toBe(whole.state);
        if (cut.state === 'answer' && whole.state === 'answer') expect(cut.status).toBe(whole.status);
        if (cut.state !== 'need-more') expect(reader.push(Buffer.from('more'))).toBe(cut);
      }),
    );
  });

  it.each([
    [200, undefined],
    [299, undefined],
    [407, 'chain_auth_refused'],
    [403, 'chain_refused'],
    [404, 'chain_refused'],
    [500, 'chain_upstream_failed'],
    [502, 'chain_upstream_failed'],
    [504, 'chain_upstream_failed'],
    [100, 'chain_answer_invalid'],
    [302, 'chain_answer_invalid'],
    [999, 'chain_answer_invalid'],
    [0, 'chain_answer_invalid'],
  ])('with status %i means %s', (status, fault) => {
    expect(decideProxyStatus(status)).toBe(fault);
  });
});
