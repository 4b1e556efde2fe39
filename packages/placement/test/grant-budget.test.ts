import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type BatchRequest,
  type BudgetAmount,
  type BudgetCap,
  chargeAttempt,
  grantBudget,
  judgeSeat,
  MIN_GRANT,
  planBatch,
  type SeatBudget,
  type SeatRoom,
} from '../src/index.ts';
import { NOW, node } from './fleet.ts';

const none: BudgetCap = { tokens: null, micros: null };
const nothing: BudgetAmount = { tokens: 0, micros: 0 };
const budget = (over: Partial<SeatBudget> = {}): SeatBudget => ({
  turn: none,
  day: none,
  total: none,
  used: { day: nothing, total: nothing },
  held: { day: nothing, total: nothing },
  ...over,
});
const tokens = (amount: number): BudgetAmount => ({ tokens: amount, micros: 0 });
const cap = (amount: number): BudgetCap => ({ tokens: amount, micros: null });

describe('the budget of a seat', () => {
  it('gives an attempt 1,000 tokens and 0.001 in money at least', () => expect(MIN_GRANT).toEqual({ tokens: 1_000, micros: 1_000 }));

  it.each<[string, Partial<SeatBudget>, number, BudgetCap]>([
    ['all of it to the one turn that may run', { day: cap(9_000) }, 1, cap(9_000)],
    ['an equal part to each turn that may run', { day: cap(9_000) }, 3, cap(3_000)],
    ['what the others did not use', { day: cap(9_000), used: { day: tokens(2_000), total: tokens(50_000) } }, 1, cap(7_000)],
    ['nothing that is held', { day: cap(9_000), held: { day: tokens(5_000), total: tokens(5_000) } }, 1, cap(4_000)],
    ['no more than a turn may have', { turn: cap(2_000), day: cap(9_000) }, 1, cap(2_000)],
    ['no more than a turn may have, also where nothing else is bounded', { turn: cap(2_000) }, 4, cap(2_000)],
    ['the smaller of day and total', { day: cap(9_000), total: cap(5_000) }, 1, cap(5_000)],
    ['the least that is of use, however many may run', { day: cap(1_500) }, 9, cap(1_000)],
    ['money by the same rule', { day: { tokens: null, micros: 6_000 } }, 2, { tokens: null, micros: 3_000 }],
    ['each of the two that is bounded', { day: { tokens: 8_000, micros: 6_000 } }, 2, { tokens: 4_000, micros: 3_000 }],
  ])('gives %s', (_what, over, free, grant) => {
    expect(grantBudget(budget(over), free)).toEqual({ verdict: 'granted', grant });
  });

  it.each<[string, Partial<SeatBudget>, object]>([
    [
      'reached on the day',
      { day: cap(9_000), used: { day: tokens(8_001), total: nothing } },
      { verdict: 'seat_budget_reached', unit: 'tokens', period: 'day' },
    ],
    [
      'reached for good',
      { total: cap(9_000), used: { day: nothing, total: tokens(9_500) } },
      { verdict: 'seat_budget_reached', unit: 'tokens', period: 'total' },
    ],
    [
      'held by turns that run',
      { day: cap(9_000), held: { day: tokens(8_001), total: nothing } },
      { verdict: 'seat_budget_held', unit: 'tokens', period: 'day' },
    ],
    [
      'reached for good, though that of the day is only held',
      { day: cap(9_000), held: { day: tokens(9_000), total: nothing }, total: cap(9_000), used: { day: nothing, total: tokens(9_000) } },
      { verdict: 'seat_budget_reached', unit: 'tokens', period: 'total' },
    ],
    [
      'reached in money',
      { day: { tokens: 9_000, micros: 5_000 }, used: { day: { tokens: 0, micros: 5_000 }, total: nothing } },
      { verdict: 'seat_budget_reached', unit: 'micros', period: 'day' },
    ],
  ])('that is %s holds a turn back', (_what, over, wanted) => expect(grantBudget(budget(over), 1)).toEqual(wanted));

  it.each([
    [
      'seat_budget_reached',
      { day: cap(9_000), used: { day: tokens(9_000), total: tokens(9_000) } },
      'of 9000 tokens a day 9000 tokens are used and 0 tokens held',
    ],
    [
      'seat_budget_reached',
      { total: { tokens: null, micros: 5_000_000 }, used: { day: nothing, total: { tokens: 0, micros: 5_000_000 } } },
      'of 5 in money 5 in money are used',
    ],
    ['seat_budget_held', { day: cap(9_000), held: { day: tokens(9_000), total: tokens(9_000) } }, 'gives back what it does not use'],
  ])('says %s with its numbers', (verdict, over, text) => {
    const judged = judgeSeat('s', { id: 's', role: 'coder', maxTurns: 2, held: 0, budget: budget(over) });
    expect(judged).toMatchObject({ verdict, transient: true, message: expect.stringContaining(text) });
  });

  it.each<[string, Parameters<typeof chargeAttempt>[0], BudgetAmount]>([
    ['what its node reported', { grant: cap(9_000), reported: tokens(10), outcome: 'completed' }, tokens(10)],
    [
      'what its node reported, also beyond what it was given',
      { grant: cap(9_000), reported: tokens(9_100), outcome: 'budget_exceeded' },
      tokens(9_100),
    ],
    ['nothing where it had no model route', { grant: cap(9_000), reported: null, outcome: 'completed' }, nothing],
    ['all that it was given where it was lost', { grant: cap(9_000), outcome: 'lost' }, tokens(9_000)],
    ['all that it was given where nobody knows how it went on', { grant: cap(9_000), outcome: 'cancelled' }, tokens(9_000)],
    ['nothing where its node refused it', { grant: cap(9_000), outcome: 'refused' }, nothing],
    ['nothing where it could not be started', { grant: cap(9_000), outcome: 'failed_to_start' }, nothing],
    ['nothing where it was lost and had no budget', { grant: null, outcome: 'lost' }, nothing],
  ])('charges %s', (_what, end, charge) => expect(chargeAttempt(end)).toEqual(charge));
});

type Planner = (request: BatchRequest) => ReturnType<typeof planBatch>;
type Step =
  | { readonly do: 'create' | 'place' | 'midnight' }
  | { readonly do: 'end'; readonly at: number; readonly used: number }
  | { readonly do: 'lose'; readonly at: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('create' as const, 'place' as const, 'place' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), at: fc.nat(9), used: fc.double({ min: 0, max: 1, noNaN: true }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const), at: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('midnight' as const) }) },
);
const world = fc.record({
  maxTurns: fc.integer({ min: 1, max: 5 }),
  dayCap: fc.option(fc.integer({ min: 1_000, max: 30_000 })),
  totalCap: fc.option(fc.integer({ min: 1_000, max: 90_000 })),
  turnCap: fc.option(fc.integer({ min: 1_000, max: 10_000 })),
  steps: fc.array(step, { maxLength: 80, size: 'max' }),
});
type World = typeof world extends fc.Arbitrary<infer Value> ? Value : never;

/** Plays turns of one seat. Throws where what is used and held goes beyond a cap, or a turn is held back though there is room and nothing is held. */
function play(plan: Planner, { maxTurns, dayCap, totalCap, turnCap, steps }: World): { placed: number; waited: number } {
  const seen = { placed: 0, waited: 0 };
  const past: { day: number; charge: number }[] = [];
  let running: { day: number; grant: BudgetCap | undefined }[] = [];
  let waiting = 0;
  let day = 0;
  const sum = (items: readonly number[]): number => items.reduce((left, right) => left + right, 0);
  const given = (grant: BudgetCap | undefined): number => grant?.tokens ?? 0;
  for (const now of steps) {
    if (now.do === 'create') waiting += 1;
    if (now.do === 'midnight') day += 1;
    if (now.do === 'end' || now.do === 'lose') {
      const [gone] = running.splice(now.at % Math.max(1, running.length), 1);
      if (gone === undefined) continue;
      const reported = now.do === 'lose' ? {} : { reported: tokens(Math.floor(given(gone.grant) * now.used)) };
      const charge = chargeAttempt({ grant: gone.grant ?? null, outcome: now.do === 'lose' ? 'lost' : 'completed', ...reported });
      past.push({ day: gone.day, charge: charge.tokens });
    }
    if (now.do !== 'place') continue;
    const used = {
      day: tokens(sum(past.filter((each) => each.day === day).map((each) => each.charge))),
      total: tokens(sum(past.map((each) => each.charge))),
    };
    const held = {
      day: tokens(sum(running.filter((each) => each.day === day).map((each) => given(each.grant)))),
      total: tokens(sum(running.map((each) => given(each.grant)))),
    };
    const caps = { turn: { ...none, tokens: turnCap }, day: { ...none, tokens: dayCap }, total: { ...none, tokens: totalCap } };
    const seat: SeatRoom = { id: 's', role: 'coder', maxTurns, held: running.length, budget: budget({ ...caps, used, held }) };
    const turns = Array.from({ length: waiting }, (_, at) => ({
      vmId: `${at}`,
      demand: {},
      backends: [],
      driverFloor: 'qemu' as const,
      seatId: 's',
    }));
    const answers = plan({
      turns,
      nodes: [node({ health: { memoryTotalMib: 4_000_000, diskFreeMib: 400_000_000 } })],
      nowMs: NOW,
      seats: [seat],
    });
    const chosen = answers.filter((each) => each.placement.verdict === 'chosen');
    if (waiting > 0 && chosen.length === 0 && running.length === 0) {
      const left = Math.min((dayCap ?? Infinity) - used.day.tokens, (totalCap ?? Infinity) - used.total.tokens);
      if (left >= MIN_GRANT.tokens) throw new Error(`kept back with ${left} left`);
    }
    running = [...running, ...chosen.map((each) => ({ day, grant: each.grant }))];
    waiting -= chosen.length;
    seen.placed += chosen.length;
    seen.waited += answers.filter((each) => each.placement.verdict.startsWith('seat_budget_')).length;
    const ofDay = used.day.tokens + sum(running.filter((each) => each.day === day).map((each) => given(each.grant)));
    const all = used.total.tokens + sum(running.map((each) => given(each.grant)));
    if (ofDay > (dayCap ?? Infinity) || all > (totalCap ?? Infinity))
      throw new Error(`outrun: ${ofDay} of ${dayCap}, ${all} of ${totalCap}`);
    if (running.some((each) => given(each.grant) > (turnCap ?? Infinity))) throw new Error('more than a turn may have');
    if ((dayCap ?? totalCap) !== null && chosen.some((each) => given(each.grant) < MIN_GRANT.tokens))
      throw new Error('too little to be of use');
  }
  return seen;
}

describe('what turns of a seat are given', () => {
  it('is never more than its budget together, and none is kept back while there is enough, under any steps', () => {
    const total = { placed: 0, waited: 0 };
    fc.assert(
      fc.property(world, (made) => {
        const { placed, waited } = play(planBatch, made);
        total.placed += placed;
        total.waited += waited;
      }),
      { numRuns: 400 },
    );
    expect(total.placed).toBeGreaterThan(500);
    expect(total.waited).toBeGreaterThan(200);
  });

  it('is seen to outrun it where a planner forgets what it gave in the same batch', () => {
    const forgetful: Planner = (request) => request.turns.flatMap((each) => planBatch({ ...request, turns: [each] }));
    const details = fc.check(
      fc.property(world, (made) => void play(forgetful, made)),
      { numRuns: 400 },
    );
    expect(String(details.errorInstance)).toMatch(/outrun/);
  });
});
