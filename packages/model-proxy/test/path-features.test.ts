import { afterEach, describe, expect, it } from 'vitest';
import { BODY, type Harness, type HarnessOptions, parseAnswer, requestBytes, SECRET, startHarness, until } from './harness.ts';

let harness: Harness;
const start = async (options?: HarnessOptions) => {
  harness = await startHarness(options);
  return harness;
};
afterEach(async () => await harness.stop());

const FORM = 'multipart/form-data; boundary=xyz';
const uploadHead = (framing: string) =>
  [
    'POST /v1/files HTTP/1.1',
    'host: x',
    'x-api-key: guest',
    'anthropic-beta: files-api-2025-04-14',
    `content-type: ${FORM}`,
    framing,
    'connection: close',
    '',
    '',
  ].join('\r\n');
const form = (bytes: number) =>
  `--xyz\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${'y'.repeat(bytes)}\r\n--xyz--\r\n`;

describe('an upload', () => {
  it('goes up as it comes, larger than a body may be, and is never held: with the credential of the host', async () => {
    const body = form(100_000);
    await start({
      rules: { features: ['file_uploads'], budget: { tokens: 1, micros: null } },
      limits: { bodyBytes: 100, bodiesBytes: 100 },
    });
    const answer = parseAnswer(await harness.send(`${uploadHead(`content-length: ${body.length}`)}${body}`));
    expect(answer.status).toBe(200);
    expect(harness.arrivals[0]?.body).toBe(body);
    expect(harness.arrivals[0]?.headers).toMatchObject({
      'content-type': FORM,
      'content-length': String(body.length),
      'x-api-key': SECRET,
      'anthropic-beta': 'files-api-2025-04-14',
    });
    expect(harness.lines).toMatchObject([
      { event: 'open', path: '/v1/files' },
      { event: 'end', reason: 'answered', charged: { tokens: 0 } },
    ]);
  });

  it('is cut where it grows beyond its bound, which a length that is announced does not reach', async () => {
    await start({ rules: { features: ['file_uploads'] }, limits: { uploadBytes: 1_000 } });
    expect(parseAnswer(await harness.send(`${uploadHead('content-length: 1001')}`)).head).toContain('x-firecrew-reason: body_too_large');
    const chunk = 'y'.repeat(600);
    const client = harness.connect();
    client.socket.write(`${uploadHead('transfer-encoding: chunked')}258\r\n${chunk}\r\n258\r\n${chunk}\r\n`);
    await until(client.closed, 'the end of the connection');
    await until(() => harness.lines.some(({ event }) => event === 'end'), 'the end line');
    expect(harness.lines.at(-1)).toMatchObject({ event: 'end', reason: 'body_too_large' });
    expect(harness.arrivals).toEqual([]);
  });

  it('that policy does not name is refused and audited by that name, and nothing goes up', async () => {
    await start();
    const answer = parseAnswer(await harness.send(`${uploadHead('content-length: 3')}abc`));
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body).error).toMatchObject({ code: 'feature_refused', message: expect.stringContaining('file_uploads') });
    expect(harness.lines).toMatchObject([{ event: 'refused', reason: 'feature_refused', features: ['file_uploads'] }]);
    expect(harness.arrivals).toEqual([]);
  });
});

/** Tokens that one request of these batches holds. */
const LEAST = Math.ceil(JSON.stringify(BODY).length / 2) + 512 + BODY.max_tokens;
const batch = (count: number, model = BODY.model) =>
  requestBytes(
    { requests: Array.from({ length: count }, (_, index) => ({ custom_id: `${index}`, params: { ...BODY, model } })) },
    { path: '/v1/messages/batches' },
  );
const accept: NonNullable<HarnessOptions['answer']> = (_arrival, response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"b","usage":{"input_tokens":1,"output_tokens":1}}');

describe('a batch', () => {
  it('holds what all of its requests may cost, and stays charged with it: nobody says here what it cost', async () => {
    await start({ rules: { features: ['batches'], budget: { tokens: 3 * LEAST, micros: null }, outputCap: 50 }, answer: accept });
    expect(parseAnswer(await harness.send(batch(4))).head).toContain('x-firecrew-reason: budget_reached');
    expect(harness.arrivals).toEqual([]);
    expect(parseAnswer(await harness.send(batch(3))).status).toBe(200);
    expect(harness.proxy.usage().charged.tokens).toBe(3 * LEAST);
    expect(harness.lines.at(-1)).toMatchObject({ event: 'end', model: 'm-1', usage: null, charged: { tokens: 3 * LEAST } });
  });

  it('that the upstream refuses costs nothing', async () => {
    await start({
      rules: { features: ['batches'], budget: { tokens: 3 * LEAST, micros: null }, outputCap: 50 },
      answer: (_arrival, response) => void response.writeHead(400).end('{}'),
    });
    expect(parseAnswer(await harness.send(batch(2))).status).toBe(400);
    expect(harness.proxy.usage().charged.tokens).toBe(0);
  });

  it('in money needs a price of every model in it', async () => {
    await start({
      rules: {
        features: ['batches'],
        budget: { tokens: null, micros: 10_000_000 },
        outputCap: 50,
        prices: { 'm-1': { input: 1, output: 2 } },
      },
      answer: accept,
    });
    expect(parseAnswer(await harness.send(batch(1, 'm-2'))).head).toContain('x-firecrew-reason: model_not_priced');
    expect(parseAnswer(await harness.send(batch(2))).status).toBe(200);
    expect(harness.proxy.usage().charged.micros).toBe(2 * (LEAST - BODY.max_tokens + 2 * BODY.max_tokens));
  });

  it.each([
    ['tokens', { tokens: 1_000_000, micros: null }, 'cost_unknown'],
    ['money', { tokens: null, micros: 1_000_000 }, 'cost_unknown'],
    ['nothing', { tokens: null, micros: null }, undefined],
  ] as const)('that lies in a file is, under a budget of %s, %o, refused: %s', async (_what, budget, reason) => {
    await start({
      rules: {
        format: 'openai_chat',
        features: ['batches', 'web_search', 'server_tools', 'url_sources', 'files', 'stored_conversations'],
        budget,
        prices: {},
      },
      answer: accept,
    });
    const body = { input_file_id: 'f', endpoint: '/v1/chat/completions', completion_window: '24h' };
    const answer = parseAnswer(await harness.send(requestBytes(body, { path: '/v1/batches' })));
    expect(answer.status).toBe(reason === undefined ? 200 : 403);
    if (reason !== undefined) expect(answer.head).toContain(`x-firecrew-reason: ${reason}`);
    expect(harness.arrivals).toHaveLength(reason === undefined ? 1 : 0);
  });
});
