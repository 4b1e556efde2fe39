import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Rig, startRig, until } from './rig.ts';

const [OLD, NEW] = ['sk-of-yesterday-0123', 'sk-of-today-0123456'];

let rig: Rig;
beforeEach(async () => {
  rig = await startRig({}, { calls: 200 }, 'later');
  rig.answer = ({ headers }, response) => response.writeHead(headers['x-api-key'] === NEW ? 200 : 401).end('{}');
});
afterEach(async () => await rig.stop());

const statuses = async (count: number) => await Promise.all(Array.from({ length: count }, async () => (await rig.send()).status));

describe('a renewable credential that the upstream refuses', () => {
  it('is told of once, by a hundred requests at once, and each of them is answered as the upstream answered', async () => {
    rig.broker.setCredential('r', OLD, true);
    const held: (() => void)[] = [];
    rig.answer = (_arrival, response) => void held.push(() => response.writeHead(401).end('{}'));
    const all = statuses(100);
    await until(() => held.length >= 64, 'the requests that fit on the connections of one turn');
    rig.answer = (_arrival, response) => response.writeHead(401).end('{}');
    for (const answer of held) answer();
    await until(() => rig.refusedCredentials.length >= 64, 'their refusals');
    rig.broker.setCredential('r', OLD, false);
    expect(await all).toEqual(Array(100).fill(401));
    expect(rig.renewals).toEqual([['r', OLD]]);
  });

  it('holds the next request back until there is another one, which it is sent with', async () => {
    rig.broker.setCredential('r', OLD, true);
    expect((await rig.send()).status).toBe(401);
    const next = rig.send();
    // What is told again and has not changed lets nothing pass.
    rig.broker.setCredential('r', OLD, true);
    await rig.send({ path: '/v1/not-listed' });
    expect(rig.arrivals).toHaveLength(1);
    rig.broker.setCredential('r', NEW, true);
    expect((await next).status).toBe(200);
    expect(rig.arrivals.map(({ headers }) => headers['x-api-key'])).toEqual([OLD, NEW]);
  });

  it('goes up again where its keeper has no other one, and is not told of again', async () => {
    rig.broker.setCredential('r', OLD, true);
    await rig.send();
    const next = rig.send();
    rig.broker.setCredential('r', OLD, false);
    expect((await next).status).toBe(401);
    expect(await statuses(3)).toEqual([401, 401, 401]);
    expect(rig.renewals).toEqual([['r', OLD]]);
  });

  it('holds nothing back for ever', async () => {
    await rig.stop();
    rig = await startRig({}, { renewalMs: 50 }, 'later');
    rig.answer = (_arrival, response) => response.writeHead(401).end('{}');
    rig.broker.setCredential('r', OLD, true);
    expect(await statuses(1)).toEqual([401]);
    expect(await statuses(2)).toEqual([401, 401]);
    expect(rig.renewals).toHaveLength(1);
  });
});

describe('a credential is not told of', () => {
  it.each([
    ['that nobody can renew', 401, false],
    ['whose rights do not suffice', 403, true],
  ])('%s', async (_what, status, isRenewable) => {
    rig.answer = (_arrival, response) => response.writeHead(status).end('{}');
    rig.broker.setCredential('r', OLD, isRenewable);
    expect(await statuses(2)).toEqual([status, status]);
    expect(rig.renewals).toEqual([]);
    expect(rig.refusedCredentials).toHaveLength(2);
  });

  it('that was replaced while the request was under way', async () => {
    rig.broker.setCredential('r', OLD, true);
    rig.answer = (_arrival, response) => {
      rig.broker.setCredential('r', NEW, true);
      response.writeHead(401).end('{}');
    };
    expect(await statuses(1)).toEqual([401]);
    expect(rig.renewals).toEqual([]);
  });
});
