import { describe, expect, it } from 'vitest';
import { decideHead, MODEL_FORMATS, type ModelFormat, readTarget, readUpstream, refusalBody, refusalStatus } from '../src/index.ts';

const JSON_TYPE = ['Content-Type', 'application/json'];
const head = (target: string, method = 'POST', rawHeaders: readonly string[] = JSON_TYPE, format: ModelFormat = 'anthropic_messages') =>
  decideHead(
    { method, target, rawHeaders },
    { format, features: [], bodyMaxBytes: 1_000, uploadMaxBytes: 5_000, credentialHeader: undefined },
  );

describe('a head', () => {
  it.each<readonly [ModelFormat, string, string, string]>([
    ['anthropic_messages', 'POST', '/v1/messages', 'generate'],
    ['anthropic_messages', 'POST', '/v1/messages?beta=true', 'generate'],
    ['anthropic_messages', 'POST', '/v1/messages/count_tokens', 'count'],
    ['anthropic_messages', 'GET', '/v1/models', 'list'],
    ['anthropic_messages', 'GET', '/v1/models/m-1?limit=2', 'list'],
    ['openai_responses', 'POST', '/v1/responses', 'generate'],
    ['openai_chat', 'POST', '/v1/chat/completions', 'generate'],
    ['openai_chat', 'GET', '/v1/models/family:9b', 'list'],
    ['gemini', 'POST', '/v1beta/models/g-2.5:generateContent', 'generate'],
    ['gemini', 'POST', '/v1/models/g-2.5:streamGenerateContent?alt=sse', 'generate'],
    ['gemini', 'POST', '/v1beta/models/g:countTokens', 'count'],
    ['pass_through', 'DELETE', '/anything/at/all?a=b&a=c', 'raw'],
  ])('of %s with %s %s passes as %s', (format, method, target, kind) => {
    expect(head(target, method, method === 'GET' ? [] : JSON_TYPE, format)).toMatchObject({ verdict: 'allowed', kind, method, target });
  });

  it.each<readonly [string, string, ModelFormat, string]>([
    ['POST', '/v1/messages/batches', 'anthropic_messages', 'feature_refused'],
    ['POST', '/v1/files', 'anthropic_messages', 'feature_refused'],
    ['POST', '/v1/messages/', 'anthropic_messages', 'path_not_listed'],
    ['POST', '/V1/messages', 'anthropic_messages', 'path_not_listed'],
    ['POST', '/v1/messagesx', 'anthropic_messages', 'path_not_listed'],
    ['POST', '/x/v1/messages', 'anthropic_messages', 'path_not_listed'],
    ['GET', '/v1/messages', 'anthropic_messages', 'method_not_allowed'],
    ['DELETE', '/v1/models/m', 'anthropic_messages', 'method_not_allowed'],
    ['GET', '/v1/responses/r_1', 'openai_responses', 'feature_refused'],
    ['POST', '/v1/chat/completions', 'openai_responses', 'path_not_listed'],
    ['POST', '/v1/batches', 'openai_chat', 'feature_refused'],
    ['POST', '/v1beta/models/g:batchGenerateContent', 'gemini', 'feature_refused'],
    ['POST', '/v1beta/files', 'gemini', 'method_not_allowed'],
    ['POST', '/upload/v1beta/files', 'gemini', 'path_not_listed'],
    ['POST', '/v1/messages?other=1', 'anthropic_messages', 'query_not_listed'],
    ['POST', '/v1/messages?beta=true&beta=false', 'anthropic_messages', 'query_not_listed'],
    ['TRACE', '/v1/messages', 'anthropic_messages', 'method_not_allowed'],
    ['POST', 'http://evil.test/v1/messages', 'anthropic_messages', 'bad_target'],
    ['POST', '*', 'pass_through', 'bad_target'],
  ])('%s %s of %s is refused as %s', (method, target, format, reason) => {
    expect(head(target, method, method === 'GET' ? [] : JSON_TYPE, format)).toMatchObject({ verdict: 'refused', reason });
  });

  it.each([
    ['two_framings', ['Content-Length', '1', 'Transfer-Encoding', 'chunked']],
    ['two_framings', ['Content-Length', '1', 'content-length', '1']],
    ['two_framings', ['Transfer-Encoding', 'gzip, chunked']],
    ['two_framings', ['Content-Length', '+1']],
    ['body_too_large', ['Content-Length', '1001']],
    ['upgrade_refused', ['Upgrade', 'h2c']],
    ['upgrade_refused', ['Connection', 'keep-alive, Upgrade']],
    ['encoding_refused', ['Content-Encoding', 'gzip']],
    ['bad_header', ['Trailer', 'x']],
    ['repeated_header', ['Content-Type', 'application/json', 'content-type', 'application/json']],
    ['content_type_refused', ['Content-Type', 'multipart/form-data; boundary=x']],
    ['content_type_refused', ['Content-Type', 'application/json; charset=utf-7']],
    ['too_many_headers', Array.from({ length: 202 }, () => 'x')],
  ])('is refused as %s for %j', (reason, rawHeaders) => {
    expect(head('/v1/messages', 'POST', rawHeaders)).toMatchObject({ verdict: 'refused', reason });
  });

  it('of a GET with a body is refused', () => {
    expect(head('/v1/models', 'GET', ['Content-Length', '3'])).toMatchObject({ verdict: 'refused', reason: 'bad_request' });
  });

  it('loses the credential of the guest in a query', () => {
    expect(head('/v1beta/models/g:generateContent?key=guest&alt=sse', 'POST', JSON_TYPE, 'gemini')).toMatchObject({
      target: '/v1beta/models/g:generateContent?alt=sse',
    });
  });

  it('sends no credential of the guest up in any spelling, nor what belongs to a connection', () => {
    const names = [
      'Authorization',
      'X-API-KEY',
      'x_api_key',
      'api-key',
      'X-Goog-Api-Key',
      'Cookie',
      'Proxy-Authorization',
      'My-Token',
      'Own-Header',
      'own_header',
    ];
    const hop = [
      'Host',
      'Connection',
      'Keep-Alive',
      'TE',
      'X-Forwarded-For',
      'Via',
      'Forwarded',
      'X-HTTP-Method-Override',
      'Accept-Encoding',
      'Expect',
    ];
    const rawHeaders = [...names, ...hop, 'X-Kept'].flatMap((name) => [name, 'v']);
    const result = decideHead(
      { method: 'POST', target: '/a', rawHeaders },
      { format: 'pass_through', features: [], bodyMaxBytes: 10, uploadMaxBytes: 10, credentialHeader: 'own-header' },
    );
    expect(result).toMatchObject({ verdict: 'allowed', headers: [['x-kept', 'v']] });
  });
});

describe('a target', () => {
  it.each([
    '',
    'v1',
    '@evil.test/',
    ':8443/',
    '//evil.test/v1',
    '/a//b',
    '/a/../b',
    '/a/..',
    '/.',
    '/a/%2e%2e/b',
    '/a%2fb',
    '/a\\b',
    '/a;b',
    '/a#b',
    '/a b',
    '/a\u0000',
    '/é',
    '/a?b=c#d',
    '/a?=b',
    `/${'a'.repeat(4_096)}`,
  ])('%j is none', (text) => {
    expect(readTarget(text)).toBeUndefined();
  });
  it.each(['/', '/a/b.c/d-e_f~g:h', '/a?b', '/a?b=c&d=%20'])('%j is one', (text) => {
    expect(readTarget(text)).toBeDefined();
  });
});

describe('an upstream', () => {
  it.each([
    ['https://api.model.test', { isTls: true, host: 'api.model.test', port: 443, authority: 'api.model.test', basePath: '' }],
    [
      'https://api.model.test:8443/a/b/',
      { isTls: true, host: 'api.model.test', port: 8443, authority: 'api.model.test:8443', basePath: '/a/b' },
    ],
    ['http://127.0.0.1:11434', { isTls: false, host: '127.0.0.1', port: 11434, authority: '127.0.0.1:11434', basePath: '' }],
    ['http://[::1]:1', { isTls: false, host: '::1', port: 1, authority: '[::1]:1', basePath: '' }],
  ])('%s is read', (text, upstream) => {
    expect(readUpstream(text)).toEqual(upstream);
  });
  it.each([
    '',
    'api.model.test',
    'http://api.model.test',
    'http://localhost:1',
    'http://127.0.0.1.evil.test',
    'ftp://x',
    'https://u:p@x',
    'https://x/?a=b',
    'https://x/#a',
    'https://x/a%2fb',
  ])('%s is refused', (text) => {
    expect(() => readUpstream(text)).toThrow(expect.objectContaining({ code: 'route_invalid' }));
  });
});

describe('a refusal', () => {
  it.each(MODEL_FORMATS)('of the format %s is JSON with our code and a sentence', (format) => {
    const body = refusalBody(format, 'feature_refused', 'policy does not allow it');
    expect(JSON.parse(body)).toHaveProperty(
      'error.message',
      'Firecrew refused this model call: policy does not allow it (feature_refused)',
    );
    expect(body).toContain('"feature_refused"');
    expect(refusalStatus('feature_refused')).toBe(403);
  });
});
