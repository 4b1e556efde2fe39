import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Budget, costOf, highestCost, openBudget, parsePriceTable, reserve, settle, totalTokens } from '../src/index.ts';

const tokens = (count: number) => ({ tokens: count, micros: 0 });
const held = (budget: Budget, count: number): Budget => {
  const result = reserve(budget, tokens(count));
  if (result.verdict === 'refused') throw new Error(result.reason);
  return result.budget;
};

describe('a budget', () => {
  it('has room to its last token, and says whether to wait or to give up', () => {
    const open = openBudget({ tokens: 100, micros: null });
    expect(reserve(open, tokens(101))).toEqual({ verdict: 'refused', reason: 'budget_reached' });
    const full = held(open, 100);
    expect(reserve(full, tokens(1))).toEqual({ verdict: 'refused', reason: 'budget_reserved' });
    expect(reserve(settle(full, tokens(100), tokens(10)), tokens(90)).verdict).toBe('reserved');
    expect(reserve(settle(full, tokens(100), undefined), tokens(1))).toEqual({ verdict: 'refused', reason: 'budget_reached' });
  });

  it('holds tokens and money apart', () => {
    const open = openBudget({ tokens: 1_000, micros: 5 });
    expect(reserve(open, { tokens: 1, micros: 6 }).verdict).toBe('refused');
    expect(reserve(open, { tokens: 1_001, micros: 1 }).verdict).toBe('refused');
    expect(reserve(open, { tokens: 1_000, micros: 5 }).verdict).toBe('reserved');
  });

  it('is never outrun, by up to 100 calls at once that end, fail or are aborted in any order', () => {
    const call = fc.record({
      amount: fc.nat(2_000),
      // Undefined: aborted, or ended without a word of its cost.
      share: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
      endsAfter: fc.nat(100),
    });
    fc.assert(
      fc.property(fc.nat(20_000), fc.array(call, { minLength: 1, maxLength: 300 }), (limit, calls) => {
        let budget = openBudget({ tokens: limit, micros: null });
        let underWay: { amount: number; used: number | undefined; left: number }[] = [];
        let cost = 0;
        for (const { amount, share, endsAfter } of calls) {
          if (underWay.length < 100) {
            const result = reserve(budget, tokens(amount));
            if (result.verdict === 'reserved') {
              budget = result.budget;
              underWay.push({ amount, used: share === undefined ? undefined : Math.floor(amount * share), left: endsAfter });
            }
          }
          for (const ended of underWay.filter(({ left }) => left === 0)) {
            budget = settle(budget, tokens(ended.amount), ended.used === undefined ? undefined : tokens(ended.used));
            // The worst: what was aborted cost all that it could.
            cost += ended.used ?? ended.amount;
          }
          underWay = underWay.filter(({ left }) => left > 0).map((item) => ({ ...item, left: item.left - 1 }));
          const possible = cost + underWay.reduce((sum, item) => sum + item.amount, 0);
          expect(possible).toBeLessThanOrEqual(limit);
          expect(budget.spent.tokens).toBe(cost);
          expect(budget.spent.tokens + budget.reserved.tokens).toBe(possible);
        }
      }),
    );
  });
});

describe('a price table', () => {
  const table = parsePriceTable({ models: { m: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }, n: { input: 1, output: 2 } } });

  it('prices each kind of token, in millionths', () => {
    const usage = { input: 1_000_000, cacheRead: 1_000_000, cacheWrite: 1_000_000, output: 1_000_000 };
    expect(costOf(table.m as never, usage)).toBe(22_050_000);
    expect(costOf(table.n as never, usage)).toBe(5_000_000);
    expect(totalTokens(usage)).toBe(4_000_000);
  });

  it('holds the dearest that input can be', () => {
    expect(highestCost(table.m as never, 100, 10)).toBe(525);
  });

  it.each([
    null,
    {},
    { models: {} },
    { models: { m: { input: 1 } } },
    { models: { m: { input: -1, output: 1 } } },
    { models: { m: { input: '1', output: 1 } } },
    { models: { m: { input: 1, output: 1, other: 1 } } },
  ])('%j is none', (document) => {
    expect(() => parsePriceTable(document)).toThrow(expect.objectContaining({ code: 'price_table_invalid' }));
  });
});
