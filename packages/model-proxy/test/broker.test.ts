import { once } from 'node:events';
import { createCredentialBroker, newHandle } from '@firecrew/credential-broker';
import { afterEach, describe, expect, it } from 'vitest';
import { BODY, type Harness, type HarnessOptions, parseAnswer, requestBytes, startHarness, until } from './harness.ts';

let harness: Harness;
const start = async (options?: HarnessOptions) => {
  harness = await startHarness(options);
  return harness;
};
afterEach(async () => await harness.stop());

const BUDGET = { rules: { budget: { tokens: 100_000, micros: null }, outputCap: 50 } } as const;
const unending: NonNullable<HarnessOptions['answer']> = (_arrival, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('data: {}\n\n');
};

/** Ends the broker of a harness as the end of its process does. */
async function kill({ broker }: Harness): Promise<void> {
  const closed = once(broker.server, 'close');
  broker.close();
  await closed;
}

/** A new broker in the place of one that is gone, which knows what that one knew. */
async function replace(target: Harness): Promise<() => void> {
  const broker = createCredentialBroker({ lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]) });
  broker.setRoute('r', { format: 'anthropic_messages', upstream: target.upstream, ca: target.ca });
  broker.setCredential('r', null);
  broker.setHandles([{ handle: target.handle, route: 'r', validUntilMs: Number.POSITIVE_INFINITY }]);
  broker.server.listen(target.socketPath);
  await once(broker.server, 'listening');
  return () => broker.close();
}

describe('a broker that ends', () => {
  it('before there is an answer ends the call with a code, charged as it was held; the next call works', async () => {
    let isFirst = true;
    await start({
      ...BUDGET,
      answer: (_arrival, response) => {
        if (!isFirst)
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end('{"type":"message","usage":{"input_tokens":1,"output_tokens":1}}');
        isFirst = false;
      },
    });
    const answered = harness.send(requestBytes());
    await until(() => harness.arrivals.length === 1, 'the request');
    await kill(harness);
    const first = parseAnswer(await answered);
    expect(first.head).toMatch(/^HTTP\/1\.1 502 [\s\S]*x-firecrew-reason: broker_lost/);
    expect(JSON.parse(first.body).error.message).toContain('ended before there was an answer');
    const held = harness.proxy.usage().charged.tokens;
    expect(held).toBeGreaterThan(500);
    expect(harness.lines).toMatchObject([
      { event: 'open' },
      { event: 'end', reason: 'broker_lost', usage: null, charged: { tokens: held } },
    ]);
    const end = await replace(harness);
    expect(parseAnswer(await harness.send(requestBytes())).status).toBe(200);
    expect(harness.proxy.usage()).toMatchObject({ calls: 2, unreadCalls: 1, charged: { tokens: held + 2 } });
    end();
  });

  it('in the middle of an answer cuts it, charged as it was held', async () => {
    await start({ ...BUDGET, answer: unending });
    const client = harness.connect();
    client.socket.write(requestBytes({ ...BODY, stream: true }));
    await until(() => client.text().includes('data: {}'), 'the first event');
    await kill(harness);
    await until(client.closed, 'the end of the connection');
    await until(() => harness.lines.length === 2, 'the end line');
    expect(harness.lines[1]).toMatchObject({ event: 'end', reason: 'upstream_gone', usage: null });
    expect(harness.proxy.usage().charged.tokens).toBeGreaterThan(500);
  });

  it('and starts again within the wait is not noticed by a call', async () => {
    await start();
    await kill(harness);
    const answered = harness.send(requestBytes());
    await until(() => harness.lines.length === 1, 'the open line');
    const end = await replace(harness);
    expect(parseAnswer(await answered).status).toBe(200);
    expect(harness.lines.map(({ event, reason }) => `${event} ${reason}`)).toEqual(['open listed', 'end answered']);
    end();
  });

  it('and does not start again in time is told as such, and nothing is charged', async () => {
    await start({ ...BUDGET, limits: { brokerMs: 60 } });
    await kill(harness);
    expect(parseAnswer(await harness.send(requestBytes())).head).toMatch(/^HTTP\/1\.1 503 [\s\S]*x-firecrew-reason: broker_unreachable/);
    expect(harness.lines[1]).toMatchObject({ event: 'end', reason: 'broker_unreachable', charged: { tokens: 0 } });
  });
});

describe('a handle', () => {
  it('that the broker does not know yet is asked for again, also when another one comes meanwhile', async () => {
    await start({ handle: newHandle() });
    const answered = harness.send(requestBytes());
    await until(() => harness.lines.length === 1, 'the open line');
    harness.proxy.setHandle(harness.handle);
    expect(parseAnswer(await answered).status).toBe(200);
    expect(harness.arrivals).toHaveLength(1);
  });

  it('that does not come in time is told as such, and nothing is charged', async () => {
    await start({ ...BUDGET, handle: undefined, limits: { brokerMs: 30 } });
    expect(parseAnswer(await harness.send(requestBytes())).head).toMatch(/^HTTP\/1\.1 503 [\s\S]*x-firecrew-reason: handle_refused/);
    expect(harness.proxy.usage().charged.tokens).toBe(0);
    expect(harness.arrivals).toEqual([]);
  });

  it('that is taken away ends what is under way at once, and lets nothing more through', async () => {
    await start({ limits: { brokerMs: 30 }, answer: unending });
    const client = harness.connect();
    client.socket.write(requestBytes({ ...BODY, stream: true }));
    await until(() => client.text().includes('data: {}'), 'the first event');
    harness.broker.setHandles([]);
    await until(client.closed, 'the end of the connection');
    await until(() => harness.arrivals[0]?.isClosed() === true, 'the end at the upstream');
    expect(parseAnswer(await harness.send(requestBytes())).head).toContain('x-firecrew-reason: handle_refused');
    expect(harness.arrivals).toHaveLength(1);
  });

  it('is in no line of the audit', async () => {
    await start();
    await harness.send(requestBytes());
    await harness.send(requestBytes(BODY, { path: '/elsewhere' }));
    expect(harness.lines).toHaveLength(3);
    expect(JSON.stringify([harness.lines, harness.proxy.usage()])).not.toContain(harness.handle);
  });

  it('is sent again with no body that was passed on unread', async () => {
    await start({ rules: { format: 'pass_through' }, handle: newHandle(), limits: { brokerMs: 5_000 } });
    const answer = parseAnswer(await harness.send(requestBytes('bytes', { path: '/a', method: 'PUT' })));
    expect(answer.head).toContain('x-firecrew-reason: handle_refused');
    expect(harness.arrivals).toEqual([]);
  });
});
