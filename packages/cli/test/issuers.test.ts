// Issuers that a file describes: the file, its templates, its answers, and the calls themselves against a real HTTP server.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SeatKey } from '@firecrew/seat-keys';
import { issuerCases } from '@firecrew/seat-keys/testing';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { fillBody, fillUrl } from '../src/issuers/fill-template.ts';
import { ANSWER_MAX_BYTES, HttpIssuer } from '../src/issuers/http-issuer.ts';
import { type HttpIssuerFile, isUsable, parseIssuer, readIssuerFile } from '../src/issuers/issuer-file.ts';
import { readMinted, valueAt } from '../src/issuers/read-answer.ts';
import { readSecret } from '../src/issuers/read-secret.ts';
import { StaticIssuer } from '../src/issuers/static-issuer.ts';

/** An answer with its key as text: keys are equal to each other for a matcher. */
const shown = <Reply extends { readonly key?: SeatKey }>(reply: Reply) =>
  reply.key === undefined ? reply : { ...reply, key: reply.key.reveal() };

const ADMIN = 'admin-credential-do-not-print';
const fileFor = (url: string): HttpIssuerFile => ({
  version: 1,
  name: 'portal',
  kind: 'http',
  url,
  credential: { header: 'authorization', prefix: 'Bearer ', from: { variable: 'PORTAL_TOKEN' } },
  mint: {
    method: 'POST',
    path: '/seats/{seatId}/keys',
    headers: { 'idempotency-key': '{requestId}' },
    body: { label: '{name}', labels: ['{role}', '{workspace}'], ttl: 3600 },
    statuses: [201],
    key: '/data/secret',
    keyId: '/data/id',
    expiresAt: '/data/ends',
  },
  revoke: { method: 'DELETE', path: '/keys/{keyId}', body: { next: '{successor}' }, statuses: [200, 204] },
  rotate: { method: 'POST', path: '/keys/{keyId}/rotate', statuses: [200], key: '/data/secret', keyId: '/data/id' },
  whoami: { method: 'GET', path: '/self', as: 'key', statuses: [200] },
  mintRight: { method: 'GET', path: '/rights/mint', statuses: [204] },
});

describe('an issuer file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'issuer-'));
  const path = join(folder, 'issuer.json');
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const whole = fileFor('https://keys.example.com/api/');

  it('is read where it is valid', async () => {
    writeFileSync(path, JSON.stringify(whole), { mode: 0o600 });
    expect(await readIssuerFile(path)).toEqual(whole);
  });

  it.each<[string, object]>([
    ['an unknown key', { more: 1 }],
    ['a URL that leaves the machine in the clear', { url: 'http://keys.example.com/' }],
    ['a URL with a password', { url: 'https://me:secret@keys.example.com/' }],
    ['a URL with a query', { url: 'https://keys.example.com/?a=b' }],
    ['a placeholder that nothing knows', { mint: { ...whole.mint, path: '/x/{secret}' } }],
    ['a placeholder of another call, deep in a body', { mint: { ...whole.mint, body: { a: [{ b: '{keyId}' }] } } }],
    ['a success that is none', { mint: { ...whole.mint, statuses: [302] } }],
    ['a pointer that is none', { mint: { ...whole.mint, key: 'data.key' } }],
    ['the header of its credential twice', { mint: { ...whole.mint, headers: { authorization: 'x' } } }],
    ['a header of HTTP itself', { mint: { ...whole.mint, headers: { host: 'x' } } }],
    ['a body of a GET', { whoami: { ...whole.whoami, body: {} } }],
    ['a fragment', { mint: { ...whole.mint, path: '/x#y' } }],
    ['a relative path of a file', { credential: { header: 'x-key', from: { file: 'here' } } }],
    ['another version', { version: 2 }],
  ])('is refused with %s', (_what, change) => expect(parseIssuer({ ...whole, ...change })).toHaveProperty('faults'));

  it.each([
    ['that others may write', JSON.stringify(whole), 0o622],
    ['that is no JSON', '{', 0o600],
    ['that is too long', ' '.repeat(70_000), 0o600],
  ])('%s is refused with its code', async (_what, text, mode) => {
    writeFileSync(path, text);
    chmodSync(path, mode);
    await expect(readIssuerFile(path)).rejects.toMatchObject({ code: 'issuer_invalid' });
    await expect(readIssuerFile(join(folder, 'none'))).rejects.toMatchObject({ code: 'issuer_invalid' });
  });

  it.each([
    ['https://keys.example.com', true],
    ['http://127.0.0.1:80/', true],
    ['http://[::1]/', true],
    ['http://localhost:1/', true],
    ['http://127.0.0.1.example.com/', false],
    ['http://localhost.example.com/', false],
    ['file:///etc/passwd', false],
    ['no url', false],
  ])('%s may get secrets: %s', (url, may) => expect(isUsable(url)).toBe(may));

  it.each([
    ['missing', {}],
    ['empty', { X: '' }],
    ['of two lines', { X: 'one\ntwo' }],
    ['with a space', { X: 'one two' }],
  ])('whose secret is %s is refused without a word of it', async (_what, env) => {
    const failed = await readSecret({ variable: 'X' }, env).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'issuer_secret_unreadable' });
    expect(JSON.stringify(failed) + String(failed)).not.toContain('two');
  });
});

describe('a template', () => {
  it('keeps every value one part of the path, whatever it holds, or gives no URL at all', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('.', '..', '/', '../..', '%2e%2e', '?a', '#b', '@evil.example', '\\')),
        (keyId) => {
          let url: URL | undefined;
          try {
            url = fillUrl('https://keys.example.com/api/', '/keys/{keyId}/end', { keyId });
          } catch (error) {
            // A lone surrogate has no form in a URL.
            expect(error).toBeInstanceOf(URIError);
            return;
          }
          if (url === undefined) return;
          const parts = url.pathname.split('/');
          expect([url.origin, url.search, url.hash, parts.length]).toEqual(['https://keys.example.com', '', '', 5]);
          expect(decodeURIComponent(parts[3] ?? '')).toBe(keyId);
        },
      ),
    );
    expect(fillUrl('https://keys.example.com/api', '/keys/{keyId}', { keyId: '..' })).toBeUndefined();
    expect(fillUrl('https://keys.example.com/api', '/keys?id={keyId}', { keyId: 'a&b' })?.href).toBe(
      'https://keys.example.com/api/keys?id=a%26b',
    );
  });

  it('keeps a body as it is but for its texts, and leaves a member without a value out', () => {
    const body = { a: '{keyId}', b: ['{role}', 1, null], next: '{successor}', said: 'for {successor}' };
    expect(fillBody(body, { keyId: '","x":"', role: 'coder' })).toEqual({ a: '","x":"', b: ['coder', 1, null], said: 'for ' });
  });
});

describe('an answer', () => {
  it.each<[string, unknown]>([
    ['/a/b', { a: { b: 1 } }],
    ['/a/0', { a: [1] }],
    ['/a~1b', { 'a/b': 1 }],
    ['/a~0b', { 'a~b': 1 }],
  ])('gives what lies at %s', (pointer, body) => expect(valueAt(body, pointer)).toBe(1));

  it.each<[string, unknown]>([
    ['/constructor', {}],
    ['/a/length', { a: [] }],
    ['/a/01', { a: [0, 1] }],
    ['/a/b', { a: null }],
    ['/a', undefined],
  ])('gives nothing at %s of %j', (pointer, body) => expect(valueAt(body, pointer)).toBeUndefined());

  const call = { key: '/k', keyId: '/i', expiresAt: '/e' };
  it.each<[string, unknown, unknown]>([
    ['a key with a line in it', { k: 'a\nb', i: 'x' }, { keyId: 'x' }],
    ['a key that is no text', { k: 7, i: 'x' }, { keyId: 'x' }],
    ['a key without end', { k: 'k'.repeat(5_000), i: 'x' }, { keyId: 'x' }],
    ['an id that could lead elsewhere', { k: 'k', i: '../x' }, { key: 'k' }],
    ['an id of dots', { k: 'k', i: '..' }, { key: 'k' }],
    ['an id that is a number', { k: 'k', i: 7 }, { key: 'k', keyId: '7' }],
    ['an end in seconds', { i: 'x', e: 1_767_225_600 }, { keyId: 'x', expiresAt: '2026-01-01T00:00:00.000Z' }],
    ['an end in another zone', { i: 'x', e: '2026-01-01T02:00:00+02:00' }, { keyId: 'x', expiresAt: '2026-01-01T00:00:00.000Z' }],
    ['an end that is none', { i: 'x', e: 'soon' }, { keyId: 'x' }],
  ])('with %s gives what is usable of it', (_what, body, wanted) => expect(shown(readMinted(call, body))).toEqual(wanted));
});

describe('the calls of an issuer', () => {
  const keys = new Map<string, string>();
  const seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = [];
  let answer: ((response: ServerResponse) => void) | undefined;
  let count = 0;
  let server: Server;
  let url = '';
  const issuer = (timeoutMs = 10_000) =>
    new HttpIssuer({ file: { ...fileFor(url), timeoutMs }, credential: ADMIN, workspace: { id: 'wsp_1', name: 'team' } });
  const request = { seatId: 'seat-1', role: 'coder', name: 'firecrew node coder' };

  const serve = (method: string, path: string, auth: string | undefined): [number, unknown] => {
    const made = (): [number, unknown] => {
      count += 1;
      keys.set(`id-${count}`, `secret-${count}`);
      return [201, { data: { id: `id-${count}`, secret: `secret-${count}`, ends: '2027-01-01T00:00:00Z' } }];
    };
    if (method === 'GET' && path === '/api/self') return [[...keys.values()].some((key) => auth === `Bearer ${key}`) ? 200 : 401, {}];
    if (auth !== `Bearer ${ADMIN}`) return [401, {}];
    if (method === 'GET' && path === '/api/rights/mint') return [204, undefined];
    if (method === 'POST' && path === '/api/seats/seat-1/keys') return made();
    const [, id = '', action] = /^\/api\/keys\/([^/]+)(\/rotate)?$/.exec(path) ?? [];
    if (!keys.delete(id)) return [404, {}];
    return action === undefined ? [204, undefined] : [200, made()[1]];
  };
  beforeAll(async () => {
    server = createServer((incoming, response) => {
      const parts: Buffer[] = [];
      incoming.on('data', (part: Buffer) => parts.push(part));
      incoming.on('end', () => {
        seen.push({
          method: incoming.method ?? '',
          url: incoming.url ?? '',
          headers: incoming.headers,
          body: Buffer.concat(parts).toString(),
        });
        if (answer !== undefined) return answer(response);
        const [status, body] = serve(incoming.method ?? '', incoming.url ?? '', incoming.headers.authorization);
        response.writeHead(status).end(body === undefined ? undefined : JSON.stringify(body));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/`;
  });
  afterEach(() => {
    answer = undefined;
    seen.length = 0;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it.each(issuerCases)('$name', ({ run }) => run(issuer()));

  it('send what the file says, with values in their places, and a number of its own for each mint', async () => {
    await issuer().mint({ ...request, name: 'a "quoted" name' });
    await issuer().mint(request);
    await issuer().revoke('id-x', { successor: 'id-y' });
    await issuer().revoke('id-x');
    expect(seen.map(({ method, url: path }) => `${method} ${path}`)).toEqual([
      'POST /api/seats/seat-1/keys',
      'POST /api/seats/seat-1/keys',
      'DELETE /api/keys/id-x',
      'DELETE /api/keys/id-x',
    ]);
    expect(JSON.parse(seen[0]?.body ?? '')).toEqual({ label: 'a "quoted" name', labels: ['coder', 'team'], ttl: 3600 });
    expect(seen.slice(2).map(({ body }) => body)).toEqual(['{"next":"id-y"}', '{}']);
    expect(seen[0]?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/);
    expect(seen[1]?.headers['idempotency-key']).not.toBe(seen[0]?.headers['idempotency-key']);
  });

  it.each<[string, (response: ServerResponse) => void, unknown]>([
    ['a redirect is not followed', (r) => r.writeHead(307, { location: '/api/seats/seat-1/keys' }).end(), { status: 307 }],
    ['a refusal is told', (r) => r.writeHead(403).end('{}'), { status: 403 }],
    ['a fault is told', (r) => r.writeHead(500).end(ADMIN), { status: 500 }],
    [
      'another success than the file names does not count',
      (r) => r.writeHead(200).end('{"data":{"secret":"s","id":"i"}}'),
      { status: 'unreachable' },
    ],
    ['an answer that is no JSON holds no key', (r) => r.writeHead(201).end('<html>'), { status: 201 }],
    ['an answer without an id gives none', (r) => r.writeHead(201).end('{"data":{"secret":"s"}}'), { status: 201, key: 's' }],
    [
      'an answer without end is not read to it',
      (r) => r.writeHead(201).end(`"${'x'.repeat(ANSWER_MAX_BYTES + 1)}"`),
      { status: 'unreachable' },
    ],
    [
      'an answer that is cut does not count',
      (r) => r.writeHead(201, { 'content-length': '100' }).write('{', () => r.destroy()),
      { status: 'unreachable' },
    ],
    ['no answer at all is none', (r) => r.destroy(), { status: 'unreachable' }],
  ])('%s, and is not sent again', async (_what, how, wanted) => {
    answer = how;
    const reply = await issuer().mint(request);
    expect(shown(reply)).toEqual(wanted);
    expect(JSON.stringify(reply)).not.toContain(ADMIN);
    expect(seen).toHaveLength(1);
  });

  it('end with their time where nobody answers', async () => {
    answer = () => undefined;
    expect(await issuer(100).mint(request)).toEqual({ status: 'unreachable' });
    answer = (response) => response.writeHead(201).write('{');
    expect(await issuer(100).mint(request)).toEqual({ status: 'unreachable' });
  });

  it('send nothing where a value would lead them elsewhere', async () => {
    await expect(issuer().revoke('..')).rejects.toMatchObject({ code: 'issuer_call_refused' });
    expect(seen).toEqual([]);
  });
});

describe('an issuer of keys that were put in', () => {
  const key = new SeatKey('fcs_x');
  const make = (accepted: boolean) =>
    new StaticIssuer({ name: 'ops', keys: new Map([['coder', { key, keyId: 'tok_1' }]]), isAccepted: async () => accepted });
  const request = { seatId: 's', name: 'n' };

  it('gives the key of a role and of no other', async () => {
    expect(shown(await make(true).mint({ ...request, role: 'coder' }))).toEqual({ status: 200, key: 'fcs_x', keyId: 'tok_1' });
    expect(await make(true).mint({ ...request, role: 'constructor' })).toEqual({ status: 'not_offered' });
  });

  it('ends nothing: a key is gone once the server does not accept it, and one that it does not know never is', async () => {
    expect([await make(true).revoke('tok_1'), await make(false).revoke('tok_1'), await make(false).revoke('tok_2')]).toEqual([
      { status: 'not_offered' },
      { status: 404 },
      { status: 'not_offered' },
    ]);
  });
});
