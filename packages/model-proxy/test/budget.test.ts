import { request } from 'node:http';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { BODY, type Harness, type HarnessOptions, parseAnswer, requestBytes, startHarness, until } from './harness.ts';

let harness: Harness | undefined;
const start = async (options: HarnessOptions) => {
  harness = await startHarness(options);
  return harness;
};
afterEach(async () => await harness?.stop());

/** Tokens that the least request of these tests holds. */
const LEAST = Math.ceil(JSON.stringify(BODY).length / 2) + 512 + BODY.max_tokens;

const answerWith =
  (usage: Record<string, number>): NonNullable<HarnessOptions['answer']> =>
  (_arrival, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ type: 'message', usage }));
  };

describe('a budget of a route', () => {
  it('refuses what does not fit, with a sentence that says what is left, and tells of it once after the guest was told', async () => {
    const { send, proxy, budgetReached, arrivals } = await start({
      rules: { budget: { tokens: LEAST + 10, micros: null }, outputCap: 50 },
      answer: answerWith({ input_tokens: 100, output_tokens: 10 }),
    });
    expect(parseAnswer(await send(requestBytes())).status).toBe(200);
    expect(proxy.usage()).toMatchObject({ charged: { tokens: 110 }, isBudgetReached: false });
    const refused = parseAnswer(await send(requestBytes()));
    expect(refused.head).toMatch(/^HTTP\/1\.1 403 [\s\S]*x-firecrew-reason: budget_reached/);
    expect(JSON.parse(refused.body).error.message).toMatch(
      new RegExp(`may cost ${LEAST} tokens, of ${LEAST + 10} tokens 110 are spent and 0 held`),
    );
    expect(parseAnswer(await send(requestBytes())).status).toBe(403);
    expect([budgetReached(), arrivals.length, proxy.usage().isBudgetReached]).toEqual([1, 1, true]);
  });

  it('that calls under way hold is no end: the guest is told to come again', async () => {
    const answers: (() => void)[] = [];
    const { send, connect, budgetReached } = await start({
      rules: { budget: { tokens: LEAST + 200, micros: null }, outputCap: 50 },
      answer: (arrival, response) => void answers.push(() => answerWith({ input_tokens: 10, output_tokens: 1 })(arrival, response)),
    });
    const first = connect();
    first.socket.write(requestBytes());
    await until(() => answers.length === 1, 'the first call');
    expect(parseAnswer(await send(requestBytes())).head).toMatch(/^HTTP\/1\.1 429 [\s\S]*budget_reserved[\s\S]*retry-after/);
    answers[0]?.();
    await until(first.closed, 'the first answer');
    const second = connect();
    second.socket.write(requestBytes());
    await until(() => answers.length === 2, 'the second call');
    expect(budgetReached()).toBe(0);
  });

  it('in money needs a price of the model, and is charged by it', async () => {
    const { send, proxy } = await start({
      rules: { budget: { tokens: null, micros: 10_000 }, outputCap: 50, prices: { 'm-1': { input: 3, output: 15 } } },
      answer: answerWith({ input_tokens: 100, output_tokens: 10 }),
    });
    expect(parseAnswer(await send(requestBytes({ ...BODY, model: 'm-2' }))).head).toContain('x-firecrew-reason: model_not_priced');
    expect(parseAnswer(await send(requestBytes())).status).toBe(200);
    expect(proxy.usage().charged).toEqual({ tokens: 110, micros: 450 });
  });

  it.each<readonly [string, NonNullable<HarnessOptions['answer']>, number]>([
    ['says nothing of its cost', (_arrival, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'), LEAST],
    ['is cut by the upstream', (_arrival, response) => void response.writeHead(200).write('{', () => response.destroy()), LEAST],
    ['is an error', (_arrival, response) => response.writeHead(529, { 'content-type': 'application/json' }).end('{}'), 0],
  ])('is charged for an answer that %s', async (_what, answer, charged) => {
    const { send, proxy, lines } = await start({ rules: { budget: { tokens: 100_000, micros: null }, outputCap: 50 }, answer });
    await send(requestBytes());
    await until(() => lines.length === 2, 'the end line');
    expect(proxy.usage().charged.tokens).toBe(charged);
  });

  it('sets a limit of output where a request has none', async () => {
    const { send, arrivals } = await start({ rules: { budget: { tokens: 100_000, micros: null }, outputCap: 50 } });
    const { max_tokens: _, ...body } = BODY;
    await send(requestBytes(body));
    expect(JSON.parse(arrivals[0]?.body ?? '')).toMatchObject({ max_tokens: 50 });
  });

  it('is not outrun by 100 calls at once that end, fail or are aborted before they say what they cost', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('ends', 'fails', 'aborted early', 'aborted late'), { minLength: 100, maxLength: 100 }),
        fc.integer({ min: 1, max: 30 }),
        async (fates, calls) => {
          let cost = 0;
          const limit = LEAST * calls;
          const own = await startHarness({
            limits: { calls: 200 },
            rules: { budget: { tokens: limit, micros: null }, outputCap: 50 },
            answer: (arrival, response) => {
              const fate = fates[JSON.parse(arrival.body).temperature];
              // The provider bills what it was asked for, whoever is still there to read it.
              if (fate === 'ends') {
                cost += 30;
                answerWith({ input_tokens: 25, output_tokens: 5 })(arrival, response);
                return;
              }
              cost += LEAST;
              if (fate === 'fails') response.writeHead(200).write('{', () => response.destroy());
              else response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n');
            },
          });
          try {
            await Promise.all(fates.map((fate, index) => callOnce(own.port, index, fate)));
            await until(
              () => own.lines.filter(({ event }) => event === 'open').length === own.lines.filter(({ event }) => event === 'end').length,
              'the end of every call',
            );
            expect(cost).toBeLessThanOrEqual(limit);
            expect(own.proxy.usage().charged.tokens).toBeLessThanOrEqual(limit);
            expect(own.proxy.usage().charged.tokens).toBeGreaterThanOrEqual(cost);
          } finally {
            await own.stop();
          }
        },
      ),
      { numRuns: 10 },
    );
  });
});

/** One call of a crowd; an early abort comes before anything is answered, a late one with the first byte. */
async function callOnce(port: number, index: number, fate: string): Promise<void> {
  await new Promise<void>((resolve) => {
    const call = request({
      port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/v1/messages',
      agent: false,
      headers: { 'content-type': 'application/json' },
    });
    call.on('error', () => undefined);
    call.once('close', resolve);
    call.once('response', (response) => {
      response.on('error', () => undefined).on('data', () => (fate === 'aborted late' ? call.destroy() : undefined));
    });
    // As long as the least request is, whatever its number.
    call.end(JSON.stringify({ ...BODY, temperature: index }), () => {
      if (fate === 'aborted early') setTimeout(() => call.destroy(), index % 7);
    });
  });
}
