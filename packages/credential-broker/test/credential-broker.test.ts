import { MODEL_FORMATS } from '@firecrew/model-route';
import { afterEach, describe, expect, it } from 'vitest';
import { handleHeader, isHandle, newHandle, readRefused } from '../src/index.ts';
import { type Rig, SECRET, type SendOptions, startRig, until } from './rig.ts';

let rig: Rig;
afterEach(async () => await rig.stop());

/** Answers with one event at once, and gives the way to send more. */
function streaming(target: Rig): (() => void)[] {
  const more: (() => void)[] = [];
  target.answer = (_arrival, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: 1\n\n');
    more.push(() => response.write('data: 2\n\n'));
  };
  return more;
}

describe('a request with a handle', () => {
  it('goes to the upstream of its route with the credential, and shows it no handle', async () => {
    rig = await startRig();
    const sent = await rig.send({ path: '/v1/messages?beta=true', headers: [['anthropic-version', '2023-06-01']] });
    expect(sent).toMatchObject({ status: 200, refused: undefined, body: '{}', leaks: 0 });
    expect(rig.arrivals).toMatchObject([{ method: 'POST', url: '/base/v1/messages?beta=true', body: '{"a":1}' }]);
    expect(rig.arrivals[0]?.headers).toEqual({
      host: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
      'content-length': '7',
      'user-agent': 'firecrew',
      'accept-encoding': 'identity',
      'x-api-key': SECRET,
      connection: 'keep-alive',
    });
  });

  it('shows no handle either where bodies are passed through, in whatever headers come with it', async () => {
    rig = await startRig({ format: 'pass_through', header: { name: 'x-own', prefix: 'Key ' } });
    const headers = [
      ['x-own', 'of the shim'],
      ['authorization', 'Bearer of-the-shim'],
      ['x-other', 'y'],
    ] as const;
    expect((await rig.send({ method: 'PUT', path: '/any/path', body: 'bytes', headers })).status).toBe(200);
    const [arrival] = rig.arrivals;
    expect(arrival).toMatchObject({ method: 'PUT', url: '/base/any/path', body: 'bytes' });
    expect(arrival?.headers).toMatchObject({ 'x-own': `Key ${SECRET}`, 'x-other': 'y' });
    expect(JSON.stringify(arrival?.headers)).not.toMatch(new RegExp(`${rig.handle}|of.the.shim`));
  });

  it('of a route without a credential goes up without one', async () => {
    rig = await startRig({}, {}, null);
    await rig.send();
    expect(rig.arrivals[0]?.headers).not.toHaveProperty('x-api-key');
  });

  it('waits for the first credential, and is refused when none comes in time', async () => {
    rig = await startRig({}, { credentialMs: 20 }, 'later');
    expect((await rig.send()).refused).toEqual({ reason: 'credential_missing', isUnsent: true });
    rig.broker.setCredential('r', SECRET);
    expect((await rig.send()).status).toBe(200);
  });
});

describe('a request is refused, and nothing goes up', () => {
  it.each<readonly [string, SendOptions]>([
    ['without a handle', { handle: null }],
    ['with a handle that nobody has', { handle: newHandle() }],
    ['with a handle cut short', { handle: newHandle().slice(1) }],
    ['with an empty handle', { handle: '' }],
    ['with two handles', { headers: [handleHeader(newHandle())] }],
  ])('that comes %s', async (_what, options) => {
    rig = await startRig();
    expect(await rig.send(options)).toMatchObject({ status: 503, refused: { reason: 'handle_refused', isUnsent: true } });
    expect(rig.arrivals).toEqual([]);
  });

  it.each<readonly [string, SendOptions, string]>([
    ['a path that is not on the list of its format', { path: '/v1/complete' }, 'path_not_listed'],
    ['a path that is a feature which its route has not', { path: '/v1/messages/batches' }, 'feature_refused'],
    ['a path that leads out of that of the upstream', { path: '/v1/../../admin' }, 'bad_target'],
    ['a method of no path', { method: 'DELETE' }, 'method_not_allowed'],
    ['a query that is not on the list', { path: '/v1/messages?x=1' }, 'query_not_listed'],
    ['an address of another host', { path: 'http://evil.test/v1/messages' }, 'bad_target'],
    ['an encoded body', { headers: [['content-encoding', 'gzip']] }, 'encoding_refused'],
  ])('for %s, whatever the shim has let pass', async (_what, options, reason) => {
    rig = await startRig();
    expect((await rig.send(options)).refused).toEqual({ reason, isUnsent: true });
    expect(rig.arrivals).toEqual([]);
  });

  it('for what is no request, a tunnel or another protocol', async () => {
    rig = await startRig();
    const head = `host: x\r\n${handleHeader(rig.handle).join(': ')}\r\n`;
    expect(await rig.raw('\x16\x03\x01\x02\r\n\r\n')).toBe('');
    expect(await rig.raw(`CONNECT evil.test:443 HTTP/1.1\r\n${head}\r\n`)).toBe('');
    expect(await rig.raw(`POST /v1/messages HTTP/1.1\r\n${head}connection: upgrade\r\nupgrade: websocket\r\n\r\n`)).toBe('');
    expect(rig.arrivals).toEqual([]);
  });

  it('beyond the calls that one turn may have at once, which holds back no other turn', async () => {
    rig = await startRig({}, { calls: 2 });
    const other = newHandle();
    rig.broker.setHandles([rig.handle, other].map((handle) => ({ handle, route: 'r', validUntilMs: 1_000 })));
    streaming(rig);
    rig.begin();
    rig.begin();
    await until(() => rig.arrivals.length === 2, 'two calls');
    expect((await rig.send()).refused).toEqual({ reason: 'calls_busy', isUnsent: true });
    const allowed = rig.begin({ handle: other });
    await until(() => allowed.text() !== '', 'the call of the other turn');
  });

  it('as soon as a body grows beyond the bound', async () => {
    rig = await startRig({ format: 'pass_through' }, { bodyBytes: 100 });
    const chunk = 'x'.repeat(80);
    const head = `POST /a HTTP/1.1\r\nhost: x\r\n${handleHeader(rig.handle).join(': ')}\r\ntransfer-encoding: chunked\r\n\r\n`;
    expect(await rig.raw(`${head}50\r\n${chunk}\r\n50\r\n${chunk}\r\n0\r\n\r\n`)).toBe('');
    expect(rig.arrivals).toEqual([]);
  });
});

describe('a handle that is taken away', () => {
  it('ends its calls under way at once, on both sides, and no other ones', async () => {
    rig = await startRig();
    const other = newHandle();
    const both = [rig.handle, other].map((handle) => ({ handle, route: 'r', validUntilMs: 1_000 }));
    rig.broker.setHandles(both);
    const more = streaming(rig);
    const [mine, theirs] = [rig.begin(), rig.begin({ handle: other })];
    await until(() => mine.text() !== '' && theirs.text() !== '', 'both streams');
    rig.broker.setHandles(both.slice(1));
    expect(await mine.ended).toBe('cut');
    await until(() => rig.arrivals.filter((arrival) => arrival.isClosed()).length === 1, 'the end at the upstream');
    for (const send of more) send();
    await until(() => theirs.text().includes('data: 2'), 'the stream that goes on');
    expect(mine.text()).not.toContain('data: 2');
    expect((await rig.send()).refused?.reason).toBe('handle_refused');
  });

  it('ends a call that waits for its answer', async () => {
    rig = await startRig();
    rig.answer = () => undefined;
    const call = rig.begin();
    await until(() => rig.arrivals.length === 1, 'the request');
    rig.broker.setHandles([]);
    expect(await call.ended).toBe('cut');
    await until(() => rig.arrivals[0]?.isClosed() === true, 'the end at the upstream');
  });

  it('ends with its lease without a word of anybody, also in the middle of an answer', async () => {
    rig = await startRig();
    streaming(rig);
    const call = rig.begin();
    await until(() => call.text() !== '', 'the stream');
    rig.time.now = 999;
    const again = rig.begin();
    await until(() => again.text() !== '', 'a call within the lease');
    rig.time.now = 1_000;
    expect(await Promise.all([call.ended, again.ended])).toEqual(['cut', 'cut']);
    expect((await rig.send()).refused?.reason).toBe('handle_refused');
  });

  it('lives on with a lease that is renewed, and keeps its calls', async () => {
    rig = await startRig();
    const more = streaming(rig);
    const call = rig.begin();
    await until(() => call.text() !== '', 'the stream');
    rig.broker.setHandles([{ handle: rig.handle, route: 'r', validUntilMs: 5_000 }]);
    rig.time.now = 1_000;
    expect((await rig.send({ method: 'GET', path: '/v1/models/x?bad' })).refused?.reason).toBe('query_not_listed');
    more[0]?.();
    await until(() => call.text().includes('data: 2'), 'the stream that goes on');
  });

  it('shares no connection to the upstream with another one', async () => {
    rig = await startRig();
    const other = newHandle();
    rig.broker.setHandles([rig.handle, other].map((handle) => ({ handle, route: 'r', validUntilMs: 1_000 })));
    for (const handle of [rig.handle, other, rig.handle, other]) await rig.send({ handle });
    const [first, second, third, fourth] = rig.arrivals.map(({ port }) => port);
    expect([third, fourth]).toEqual([first, second]);
    expect(first).not.toBe(second);
  });
});

describe('an answer', () => {
  it('shows the credential nowhere, says how often it was taken out, and brings no headers of the upstream that are ours', async () => {
    rig = await startRig();
    rig.answer = (_arrival, response) => {
      response.writeHead(200, {
        'content-type': 'application/json',
        'request-id': SECRET,
        'x-request-id': 'r1',
        'firecrew-refusal': 'handle_refused',
        'firecrew-unsent': '1',
      });
      response.write(`{"a":"${SECRET.slice(0, 9)}`);
      response.addTrailers({ 'x-key': SECRET });
      response.end(`${SECRET.slice(9)}","b":"${Buffer.from(SECRET).toString('base64')}"}`);
    };
    const sent = await rig.send();
    expect(sent).toMatchObject({ status: 200, refused: undefined, leaks: 2 });
    expect(sent.headers).toMatchObject({ 'x-request-id': 'r1' });
    expect(JSON.stringify(sent)).not.toMatch(/sk-host|c2staG9zd/);
    expect(sent.body).toContain(`{"a":"${'*'.repeat(SECRET.length)}"`);
  });

  it('that is cut by the upstream is not whole to the shim', async () => {
    rig = await startRig();
    rig.answer = (_arrival, response) => void response.writeHead(200).write('half', () => response.destroy());
    const call = rig.begin();
    expect(await call.ended).toBe('cut');
  });

  it('of 401 or 403 is told to the node with the route, where there is a credential', async () => {
    rig = await startRig();
    rig.answer = (_arrival, response) => response.writeHead(403).end();
    await rig.send();
    expect(rig.refusedCredentials).toEqual([['r', 403]]);
    await rig.stop();
    rig = await startRig({}, {}, null);
    rig.answer = (_arrival, response) => response.writeHead(401).end();
    await rig.send();
    expect(rig.refusedCredentials).toEqual([]);
  });

  it('that does not come is told as such, with whether anything was sent', async () => {
    rig = await startRig({}, { answerMs: 50 });
    rig.answer = () => undefined;
    expect((await rig.send()).refused).toEqual({ reason: 'upstream_timeout', isUnsent: false });
    await rig.stop();
    rig = await startRig({ upstream: { isTls: false, host: '127.0.0.1', port: 1, authority: 'x', basePath: '' } });
    expect((await rig.send()).refused).toEqual({ reason: 'upstream_unreachable', isUnsent: true });
  });

  it('without a body has no trailer, and is whole', async () => {
    rig = await startRig({ format: 'pass_through' });
    rig.answer = (_arrival, response) => response.writeHead(204).end();
    expect(await rig.send({ method: 'DELETE', path: '/a' })).toMatchObject({ status: 204, body: '' });
    expect(await rig.send({ method: 'HEAD', path: '/a' })).toMatchObject({ status: 204, body: '' });
  });
});

describe('the wire between shim and broker', () => {
  it('has handles that are random and no credential of any format', async () => {
    rig = await startRig();
    const handles = Array.from({ length: 100 }, newHandle);
    expect(new Set(handles).size).toBe(100);
    expect(handles.every(isHandle)).toBe(true);
  });

  it.each(MODEL_FORMATS)('sends no handle up in the format %s', async (format) => {
    rig = await startRig({ format });
    const path = {
      anthropic_messages: '/v1/messages',
      openai_responses: '/v1/responses',
      openai_chat: '/v1/chat/completions',
      gemini: '/v1beta/models/m:generateContent',
      pass_through: '/x',
    }[format];
    expect((await rig.send({ path })).status).toBe(200);
    expect(JSON.stringify(rig.arrivals[0]?.headers)).not.toContain(rig.handle);
  });

  it('takes a reason that it does not know for the end of the broker', async () => {
    rig = await startRig();
    expect(readRefused(['firecrew-refusal', 'of another version'])).toEqual({ reason: 'broker_lost', isUnsent: false });
    expect(readRefused(['content-type', 'application/json'])).toBeUndefined();
  });
});
