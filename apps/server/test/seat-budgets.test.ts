import type { AttemptResult, SeatDetail, SeatView } from '@firecrew/protocol';
import { startTestDatabase, type TestDatabaseServer } from '@firecrew/store/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PLACE_BATCH } from '../src/driver/place-turns.ts';
import { postTo, until } from './support/ask.ts';
import { FakeNode, keyOf } from './support/fake-node.ts';
import { startTestServer, type TestServer } from './support/running-server.ts';
import { leaseSettings } from './support/short-lease.ts';

const { settings, inShortLease } = leaseSettings();

let databases: TestDatabaseServer;
let server: TestServer;
let node: FakeNode;
beforeAll(async () => {
  databases = await startTestDatabase();
});
afterAll(() => databases.stop());
beforeEach(async () => {
  server = await startTestServer(settings(), databases);
  node = await FakeNode.connect(server);
});
afterEach(async () => {
  node.close();
  await server.stop();
});

const post = <T>(path: string, json: unknown, token?: string) => postTo<T>(server, path, json, token);
const link = (maxTurns: number, budget: object) => post<SeatView>('/v1/seats', { role: 'coder', maxTurns, budget });
const show = async (id: string) => (await server.call('GET', `/v1/seats/${id}`)).body as SeatDetail;
const keyOfSeat = async (seat: SeatView) => (await post<{ key: string }>(`/v1/seats/${seat.id}/keys`, { name: 'a test' })).key;
interface View {
  readonly id: string;
  readonly state: string;
  readonly waiting: string | null;
}
const view = async (id: string) => (await server.call('GET', `/v1/missions/${id}`)).body as View;
const create = async (token: string) => {
  const phases = [{ kind: 'research', task: 'x', allowEmpty: true }];
  const json = { title: 'T', repository: { kind: 'none' }, phases, agent: { command: 'true' }, allowUnisolated: true };
  return (await post<View>('/v1/missions', json, token)).id;
};

const untilWaits = async (id: string, reason: string) =>
  await until(
    () => view(id),
    (now) => now.waiting?.startsWith(`${reason}: `) === true,
  );

const used = (tokens: number, micros = 0): Partial<AttemptResult> => ({
  model: {
    format: 'anthropic_messages',
    calls: 1,
    unreadCalls: 0,
    refused: 0,
    usage: { input: tokens, cacheRead: 0, cacheWrite: 0, output: 0 },
    chargedTokens: tokens,
    chargedMicros: micros,
    isBudgetReached: false,
  },
});

describe('the budget of a seat', () => {
  it('is shared by its turns at once, given to each with its start, and settled by what each used', async () => {
    const seat = await link(2, { dayTokens: 10_000, totalMoney: 4 });
    const key = await keyOfSeat(seat);
    await create(key);
    const first = await node.accept();
    expect(first.spec.modelBudget).toEqual({ tokens: 5_000, micros: 2_000_000 });
    await create(key);
    const second = await node.accept();
    expect(second.spec.modelBudget).toEqual({ tokens: 5_000, micros: 2_000_000 });
    expect((await show(seat.id)).seat.use).toEqual({
      day: { tokens: 0, money: 0 },
      total: { tokens: 0, money: 0 },
      held: { tokens: 10_000, money: 4 },
      attempts: 0,
    });
    await node.finish(first, {}, used(1_200, 500_000));
    const { seat: after, attempts } = await show(seat.id);
    expect(after.use).toMatchObject({ day: { tokens: 1_200, money: 0.5 }, held: { tokens: 5_000, money: 2 }, attempts: 1 });
    expect(attempts.map(({ state, grant, charge }) => [state, grant, charge])).toEqual([
      ['accepted', { tokens: 5_000, money: 2 }, null],
      ['ended', { tokens: 5_000, money: 2 }, { tokens: 1_200, money: 0.5 }],
    ]);
    await create(key);
    expect((await node.accept()).spec.modelBudget).toEqual({ tokens: 3_800, micros: 1_500_000 });
  });

  it('that is held lets a turn wait until one that runs gives back what it did not use, and that is reached until it is made larger', async () => {
    const seat = await link(2, { dayTokens: 1_500 });
    const key = await keyOfSeat(seat);
    await create(key);
    const first = await node.accept();
    expect(first.spec.modelBudget).toEqual({ tokens: 1_000, micros: null });
    const second = await create(key);
    await untilWaits(second, 'seat_budget_held');
    await node.finish(first, {}, used(400));
    const next = await node.accept();
    expect(next.spec).toMatchObject({ missionId: second, modelBudget: { tokens: 1_000 } });
    await node.finish(next, {}, used(800));
    const third = await create(key);
    expect((await untilWaits(third, 'seat_budget_reached')).waiting).toContain('of 1500 tokens a day 1200 tokens are used');
    await post('/v1/seats', { role: 'coder', budget: { dayTokens: 9_000 } });
    expect((await node.accept()).spec).toMatchObject({ missionId: third, modelBudget: { tokens: 3_900 } });
  });

  it('counts a turn for the day on which it was placed, and for good in the whole', async () => {
    const seat = await link(1, { dayTokens: 2_000, totalTokens: 50_000 });
    const key = await keyOfSeat(seat);
    await create(key);
    await node.finish(await node.accept(), {}, used(2_000));
    const waiting = await create(key);
    await untilWaits(waiting, 'seat_budget_reached');
    await server.query('update seat_use set day = day - 1');
    expect((await node.accept()).spec.missionId).toBe(waiting);
    expect((await show(seat.id)).seat.use).toMatchObject({ day: { tokens: 0 }, total: { tokens: 2_000 } });
  });

  describe('over attempts that are not settled', () => {
    inShortLease();

    it('is charged with all that was given where an attempt was lost, and with nothing where its node refused it', async () => {
      const seat = await link(1, { totalTokens: 20_000, turnTokens: 3_000 });
      const key = await keyOfSeat(seat);
      await create(key);
      const refused = await node.next('turn.start');
      node.send({ t: 'turn.refused', ...keyOf(refused.spec), code: 'spec_unreadable', message: 'x' });
      await until(
        () => show(seat.id),
        ({ seat: now }) => now.use?.attempts === 1,
      );
      expect((await show(seat.id)).seat.use?.total.tokens).toBe(0);
      await create(key);
      await node.accept();
      node.close();
      // Nobody renews its lease: the server gives it up.
      const { attempts } = await until(
        () => show(seat.id),
        ({ attempts: now }) => now.some((item) => item.outcome === 'lost'),
      );
      expect(attempts.find((item) => item.outcome === 'lost')?.charge).toEqual({ tokens: 3_000, money: 0 });
      expect((await show(seat.id)).seat.use?.total.tokens).toBe(3_000);
    });
  });

  it('is charged once for an outcome that is told twice', async () => {
    const seat = await link(1, { totalTokens: 20_000 });
    await create(await keyOfSeat(seat));
    const start = await node.accept();
    await node.finish(start, {}, used(700));
    await node.finish(start, {}, used(700)).catch(() => undefined);
    expect((await show(seat.id)).seat.use).toMatchObject({ total: { tokens: 700 }, attempts: 1 });
  });

  it('keeps no other turn from being placed once it is reached, however many wait for it', async () => {
    const seat = await link(1_000, { totalTokens: 1_000 });
    const key = await keyOfSeat(seat);
    await create(key);
    await node.finish(await node.accept(), {}, used(1_000));
    const waiting = await create(key);
    await untilWaits(waiting, 'seat_budget_reached');
    await server.query(`insert into turns (id, mission_id, phase_id, run_id, step, graph_node, state, ordinal)
      select 'trn_' || lpad(n::text, 16, '0'), mission_id, phase_id, run_id, step, graph_node, state, ordinal + n
      from turns, generate_series(1, ${PLACE_BATCH + 100}) n where mission_id = '${waiting}'`);
    const free = await create(server.token);
    expect((await node.accept()).spec.missionId).toBe(free);
  });

  it('is changed part by part, and taken away part by part', async () => {
    const seat = await link(1, { dayTokens: 5_000, totalMoney: 2.5 });
    expect(seat.budget).toMatchObject({ turnTokens: null, dayTokens: 5_000, totalMoney: 2.5 });
    const changed = await post<SeatView>('/v1/seats', { role: 'coder', budget: { dayTokens: null, turnTokens: 1_000 } });
    expect(changed.budget).toMatchObject({ turnTokens: 1_000, dayTokens: null, totalMoney: 2.5 });
    expect((await post<SeatView>('/v1/seats', { role: 'coder' })).budget).toEqual(changed.budget);
    for (const budget of [{ dayTokens: 999 }, { dayMoney: 0 }, { dayTokens: 1.5 }, { weekTokens: 5_000 }])
      expect((await server.call('POST', '/v1/seats', { json: { role: 'coder', budget } })).status).toBe(400);
  });
});

describe('a seat without a budget', () => {
  it('gives its turns none, and says what they used; another workspace finds nothing of it', async () => {
    const seat = await link(1, {});
    await create(await keyOfSeat(seat));
    const start = await node.accept();
    expect(start.spec).not.toHaveProperty('modelBudget');
    await node.finish(start, {}, used(1_234, 5_000_000));
    const { attempts, seat: now } = await show(seat.id);
    expect([now.use?.total, attempts[0]?.grant, attempts[0]?.charge]).toEqual([
      { tokens: 1_234, money: 5 },
      null,
      { tokens: 1_234, money: 5 },
    ]);
    const token = await server.addCaller('operator', false);
    expect((await server.call('GET', `/v1/seats/${seat.id}`, { token })).status).toBe(404);
  });
});
