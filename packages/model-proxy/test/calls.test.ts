import { afterEach, describe, expect, it } from 'vitest';
import { BODY, type Harness, type HarnessOptions, parseAnswer, requestBytes, SECRET, startHarness, until } from './harness.ts';

let harness: Harness;
const start = async (options?: HarnessOptions) => {
  harness = await startHarness(options);
  return harness;
};
afterEach(async () => await harness.stop());

describe('a call', () => {
  it('goes to the upstream with one credential, the host, and what was judged, and back', async () => {
    await start();
    const extra = [
      'x-api-key: guest',
      'X-API-Key: again',
      'authorization: Bearer guest',
      'cookie: a=b',
      'anthropic-version: 2023-06-01',
      'x-other: y',
    ];
    const answer = parseAnswer(await harness.send(requestBytes(BODY, { headers: extra, path: '/v1/messages?beta=true' })));
    expect(answer.status).toBe(200);
    const [arrival] = harness.arrivals;
    expect(arrival?.url).toBe('/v1/messages?beta=true');
    expect(JSON.parse(arrival?.body ?? '')).toEqual(BODY);
    expect(arrival?.headers).toEqual({
      host: 'api.model.test',
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
      'content-length': String(arrival?.body.length),
      'user-agent': 'firecrew',
      'accept-encoding': 'identity',
      'x-api-key': SECRET,
      connection: 'keep-alive',
    });
    expect(arrival?.rawHeaders.filter((name) => name.toLowerCase() === 'x-api-key')).toHaveLength(1);
  });

  it('is on record before it is forwarded, and nothing is forwarded without the line', async () => {
    let arrivalsAtOpen = -1;
    await start({
      audit: (line) => {
        if (line.event === 'open') arrivalsAtOpen = harness.arrivals.length;
      },
    });
    await harness.send(requestBytes());
    expect(arrivalsAtOpen).toBe(0);
    expect(harness.lines).toMatchObject([
      { event: 'open', call: 1, reason: 'listed', path: '/v1/messages', model: 'm-1' },
      { event: 'end', call: 1, reason: 'answered', status: 200, usage: { input: 3, output: 2 }, charged: { tokens: 5 } },
    ]);
    await harness.stop();
    await start({
      audit: () => {
        throw new Error('the disk is full');
      },
    });
    expect(parseAnswer(await harness.send(requestBytes())).head).toMatch(/^HTTP\/1\.1 503 [\s\S]*audit_unavailable/);
    expect(harness.arrivals).toEqual([]);
  });

  it('is judged in another spelling of its body than a second reader would take', async () => {
    await start();
    await harness.send(
      requestBytes('{"model":"m-1","max_tokens":1,"messages":[],"tools":[{"type":"web_search_20250305","name":"w"}],"tools":[]}'),
    );
    expect(JSON.parse(harness.arrivals[0]?.body ?? '')).toEqual({ model: 'm-1', max_tokens: 1, messages: [], tools: [] });
    expect(harness.arrivals[0]?.body).not.toContain('web_search');
  });

  it('passes each event on before the next one is there', async () => {
    const told: (() => void)[] = [];
    await start({
      answer: (_arrival, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const send = (number: number): void => {
          response.write(`event: e\ndata: {"number":${number}}\n\n`);
          told.push(() => (number < 3 ? send(number + 1) : response.end()));
        };
        send(1);
      },
    });
    const client = harness.connect();
    client.socket.write(requestBytes({ ...BODY, stream: true }));
    for (const number of [1, 2, 3]) {
      await until(() => client.text().includes(`{"number":${number}}`), `event ${number}`);
      told[number - 1]?.();
    }
    await until(client.closed, 'the end');
    expect(parseAnswer(client.text()).body).toMatch(/^(?:event: e\ndata: \{"number":\d\}\n\n){3}$/);
  });

  it('aborts the upstream when the guest goes', async () => {
    await start({
      answer: (_arrival, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: {}\n\n');
      },
    });
    const client = harness.connect();
    client.socket.write(requestBytes({ ...BODY, stream: true }));
    await until(() => client.text().includes('data: {}'), 'the first event');
    client.socket.destroy();
    await until(() => harness.arrivals[0]?.isClosed() === true, 'the end at the upstream');
    await until(() => harness.lines.length === 2, 'the end line');
    expect(harness.lines[1]).toMatchObject({ event: 'end', reason: 'guest_gone', usage: null });
  });

  it('aborts the upstream when the guest goes before there is an answer', async () => {
    await start({ answer: () => undefined });
    const client = harness.connect();
    client.socket.write(requestBytes());
    await until(() => harness.arrivals.length === 1, 'the request');
    client.socket.destroy();
    await until(() => harness.arrivals[0]?.isClosed() === true, 'the end at the upstream');
    await until(() => harness.lines.length === 2, 'the end line');
    expect(harness.lines[1]).toMatchObject({ event: 'end', reason: 'guest_gone' });
  });

  it('takes turns on one connection, each with its own answer in order', async () => {
    await start({
      answer: (arrival, response) => {
        const { max_tokens: number } = JSON.parse(arrival.body);
        setTimeout(
          () => response.writeHead(200, { 'content-type': 'application/json' }).end(`{"number":${number}}`),
          number === 1 ? 30 : 0,
        );
      },
    });
    const text = await harness.send(requestBytes({ ...BODY, max_tokens: 1 }, { isLast: false }) + requestBytes({ ...BODY, max_tokens: 2 }));
    expect(text.indexOf('"number":1')).toBeGreaterThan(0);
    expect(text.indexOf('"number":2')).toBeGreaterThan(text.indexOf('"number":1'));
    expect(harness.arrivals.map(({ headers }) => headers['x-api-key'])).toEqual([SECRET, SECRET]);
  });

  it('ends at once with a lost lease, in the middle of an answer', async () => {
    let isValid = true;
    let more = (): void => undefined;
    await start({
      leaseValid: () => isValid,
      answer: (_arrival, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: 1\n\n');
        more = () => response.write('data: 2\n\n');
      },
    });
    const client = harness.connect();
    client.socket.write(requestBytes({ ...BODY, stream: true }));
    await until(() => client.text().includes('data: 1'), 'the first event');
    isValid = false;
    more();
    await until(client.closed, 'the cut');
    expect(client.text()).not.toContain('data: 2');
    expect(parseAnswer(await harness.send(requestBytes())).head).toContain('x-firecrew-reason: lease_lost');
    expect(harness.arrivals).toHaveLength(1);
  });
});

describe('a call that is refused', () => {
  it.each([
    [
      'a body above the bound',
      requestBytes(BODY, { headers: [] }).replace(/content-length: \d+/, 'content-length: 99999999'),
      413,
      'body_too_large',
    ],
    ['a body above the bound in chunks', chunked('x'.repeat(3_000)), 413, 'body_too_large'],
    ['two framings', requestBytes(BODY, { headers: ['transfer-encoding: chunked'] }), 400, 'bad_request'],
    ['two lengths', requestBytes(BODY, { headers: ['content-length: 5'] }), 400, 'bad_request'],
    ['an upgrade', requestBytes(BODY, { headers: ['upgrade: websocket'] }), 400, 'upgrade_refused'],
    ['an encoded body', requestBytes(BODY, { headers: ['content-encoding: gzip'] }), 415, 'encoding_refused'],
    ['a long head', requestBytes(BODY, { headers: [`x-long: ${'a'.repeat(40_000)}`] }), 431, 'head_too_large'],
    ['many headers', requestBytes(BODY, { headers: Array.from({ length: 101 }, (_, index) => `x-${index}: 1`) }), 431, 'too_many_headers'],
    ['a tunnel', 'CONNECT evil.test:443 HTTP/1.1\r\nhost: evil.test\r\n\r\n', 405, 'method_not_allowed'],
    ['an absolute target', requestBytes(BODY, { path: 'http://evil.test/v1/messages' }), 400, 'bad_target'],
    ['what is no HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'bad_request'],
    ['a path that is not listed', requestBytes(BODY, { path: '/v1/complete' }), 403, 'path_not_listed'],
    ['a path that is a feature', requestBytes(BODY, { path: '/v1/messages/batches' }), 403, 'feature_refused'],
    ['a feature', requestBytes({ ...BODY, mcp_servers: [{ type: 'url', url: 'https://evil.test' }] }), 403, 'feature_refused'],
  ])('for %s is told why in the shape of its format, and nothing goes up', async (_what, bytes, status, reason) => {
    await start({ limits: { bodyBytes: 2_000 } });
    const answer = parseAnswer(await harness.send(bytes));
    expect(answer.status).toBe(status);
    expect(answer.head).toContain(`x-firecrew-reason: ${reason}`);
    expect(JSON.parse(answer.body)).toMatchObject({
      type: 'error',
      error: { message: expect.stringContaining(`(${reason})`), code: reason },
    });
    expect([harness.arrivals, harness.lookedUp]).toEqual([[], []]);
    expect(harness.lines).toMatchObject([{ event: 'refused', reason, status }]);
  });

  it('while the route is closed is not forwarded', async () => {
    await start({ isClosed: true });
    expect(parseAnswer(await harness.send(requestBytes())).head).toContain('x-firecrew-reason: route_closed');
    expect(harness.arrivals).toEqual([]);
  });

  it('for want of a credential in time says so', async () => {
    await start({ credential: undefined, brokerLimits: { credentialMs: 20 } });
    expect(parseAnswer(await harness.send(requestBytes())).head).toContain('x-firecrew-reason: credential_missing');
    expect(harness.arrivals).toEqual([]);
  });

  it('beyond the bound of calls at once is told to try again', async () => {
    await start({ limits: { calls: 1 }, answer: () => undefined });
    const client = harness.connect();
    client.socket.write(requestBytes());
    await until(() => harness.arrivals.length === 1, 'the first call');
    expect(parseAnswer(await harness.send(requestBytes())).head).toMatch(/^HTTP\/1\.1 429 [\s\S]*calls_busy/);
  });

  it('ends a connection whose head does not come in time', async () => {
    await start({ limits: { headMs: 50 } });
    const client = harness.connect();
    client.socket.write('POST /v1/mess');
    await until(client.closed, 'the end of the connection');
  });
});

describe('an upstream', () => {
  it('that is not who it says gets no byte of a request', async () => {
    await start({ upstreamHost: 'other.model.test' });
    expect(parseAnswer(await harness.send(requestBytes())).head).toMatch(/^HTTP\/1\.1 502 [\s\S]*upstream_unreachable/);
    expect(harness.arrivals).toEqual([]);
    expect(harness.proxy.usage().charged.tokens).toBe(0);
  });

  it('that is down is told as such', async () => {
    await start();
    const { upstream } = await import('@firecrew/model-route').then(({ readUpstream }) => ({
      upstream: readUpstream('http://127.0.0.1:1'),
    }));
    await harness.stop();
    await start({ route: { upstream } });
    expect(parseAnswer(await harness.send(requestBytes())).head).toContain('x-firecrew-reason: upstream_unreachable');
  });

  it('that is silent is told as such', async () => {
    await start({ answer: () => undefined, brokerLimits: { answerMs: 50 } });
    expect(parseAnswer(await harness.send(requestBytes())).head).toMatch(/^HTTP\/1\.1 504 [\s\S]*upstream_timeout/);
  });

  it('is never followed elsewhere', async () => {
    await start({ answer: (_arrival, response) => response.writeHead(302, { location: 'https://evil.test/' }).end() });
    expect(parseAnswer(await harness.send(requestBytes())).head).toMatch(/^HTTP\/1\.1 302 [\s\S]*location: https:\/\/evil\.test\//);
    expect(harness.lookedUp).toEqual(['api.model.test']);
  });

  it('that sends an encoded answer is refused', async () => {
    await start({ answer: (_arrival, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x') });
    expect(parseAnswer(await harness.send(requestBytes())).head).toContain('x-firecrew-reason: upstream_answer_refused');
  });

  it('that refuses the credential is reported within the request', async () => {
    await start({ answer: (_arrival, response) => response.writeHead(401, { 'content-type': 'application/json' }).end('{}') });
    expect(parseAnswer(await harness.send(requestBytes())).status).toBe(401);
    expect(harness.lines[1]).toMatchObject({ event: 'end', status: 401, isCredentialRefused: true, charged: { tokens: 0 } });
  });

  it('gets the newest credential with the next request, while one under way ends with its own', async () => {
    const waiting: (() => void)[] = [];
    await start({
      answer: (arrival, response) => {
        waiting.push(() =>
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ key: arrival.headers['x-api-key'] })),
        );
      },
    });
    const first = harness.connect();
    first.socket.write(requestBytes());
    await until(() => waiting.length === 1, 'the first request');
    harness.broker.setCredential('r', 'sk-newer-0123456789');
    const second = harness.connect();
    second.socket.write(requestBytes());
    await until(() => waiting.length === 2, 'the second request');
    for (const answer of waiting) answer();
    await until(() => first.closed() && second.closed(), 'both answers');
    expect(harness.arrivals.map(({ headers }) => headers['x-api-key'])).toEqual([SECRET, 'sk-newer-0123456789']);
    // The answers show neither of the two.
    expect([first, second].map((client) => parseAnswer(client.text()).body)).toEqual([
      JSON.stringify({ key: '*'.repeat(SECRET.length) }),
      JSON.stringify({ key: '*'.repeat('sk-newer-0123456789'.length) }),
    ]);
  });
});

describe('a route that is passed through', () => {
  it('ends a call whose body grows beyond the bound in chunks', async () => {
    await start({ rules: { format: 'pass_through' }, limits: { bodyBytes: 2_000 } });
    expect(await harness.send(chunked('x'.repeat(3_000)))).toBe('');
    await until(() => harness.lines.length === 2, 'the end line');
    expect(harness.lines[1]).toMatchObject({ event: 'end', reason: 'body_too_large' });
  });

  it('passes any path, method and body of an upstream on, without credentials of the guest', async () => {
    await start({ rules: { format: 'pass_through', header: { name: 'x-own', prefix: 'Key ' } } });
    const headers = ['authorization: Bearer guest', 'x-own: guest', 'x-other: y', 'te: trailers', 'connection: x-hop', 'x-hop: 1'];
    expect(parseAnswer(await harness.send(requestBytes('any bytes', { path: '/a/b?c=d', method: 'PUT', headers }))).status).toBe(200);
    const [arrival] = harness.arrivals;
    expect(arrival).toMatchObject({ method: 'PUT', url: '/a/b?c=d', body: 'any bytes' });
    expect(arrival?.headers).toMatchObject({ 'x-own': `Key ${SECRET}`, 'x-other': 'y' });
    expect(arrival?.headers).not.toHaveProperty('authorization');
    expect(arrival?.headers).not.toHaveProperty('x-hop');
  });
});

function chunked(text: string): string {
  return `POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
}
