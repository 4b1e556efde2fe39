import { describe, expect, it } from 'vitest';
import type { ModelLaunch } from '../../src/model/model-launch.ts';
import { limitLaunch } from '../../src/model/seat-budget.ts';

const launch = (over: Partial<ModelLaunch> = {}): ModelLaunch =>
  ({ format: 'anthropic_messages', budget: { tokens: null, micros: null }, outputCap: null, prices: null, ...over }) as ModelLaunch;
const prices = { 'm-1': { input: 1, output: 1 } };

describe('the route of a turn whose seat has a budget', () => {
  it.each<[string, Partial<ModelLaunch>, { tokens: number | null; micros: number | null }, object]>([
    ['is kept to it where the node sets none', {}, { tokens: 5_000, micros: null }, { tokens: 5_000, micros: null }],
    [
      'is kept to that of the node where it is smaller',
      { budget: { tokens: 2_000, micros: null } },
      { tokens: 5_000, micros: null },
      { tokens: 2_000, micros: null },
    ],
    [
      'is kept to that of the seat where it is smaller',
      { budget: { tokens: 9_000, micros: null } },
      { tokens: 5_000, micros: null },
      { tokens: 5_000, micros: null },
    ],
    [
      'is kept to tokens of the one and money of the other',
      { budget: { tokens: 9_000, micros: null }, prices },
      { tokens: null, micros: 7 },
      { tokens: 9_000, micros: 7 },
    ],
  ])('%s', (_what, over, budget, wanted) => expect(limitLaunch(launch(over), budget)?.budget).toEqual(wanted));

  it('bounds an answer that asks for no bound, since it has to be held', () => {
    expect(limitLaunch(launch(), { tokens: 5_000, micros: null })?.outputCap).toBe(32_000);
    expect(limitLaunch(launch({ outputCap: 100 }), { tokens: 5_000, micros: null })?.outputCap).toBe(100);
  });

  it.each<[string, Partial<ModelLaunch>, { tokens: number | null; micros: number | null }]>([
    ['looks into no answer', { format: 'pass_through' }, { tokens: 5_000, micros: null }],
    ['knows no prices, where it is in money', {}, { tokens: null, micros: 5_000 }],
  ])('is not started on a node that could not keep it: one that %s', (_what, over, budget) => {
    expect(() => limitLaunch(launch(over), budget)).toThrow(expect.objectContaining({ code: 'seat_budget_unkept' }));
  });

  it('is as it was where there is no budget, or no route', () => {
    const same = launch({ format: 'pass_through' });
    expect(limitLaunch(same, undefined)).toBe(same);
    expect(limitLaunch(null, { tokens: 5_000, micros: null })).toBeNull();
  });
});
