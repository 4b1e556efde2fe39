import {
  type Amount,
  type Ask,
  add,
  addUsage,
  type Budget,
  type BudgetRefusal,
  costOf,
  highestCost,
  NO_USAGE,
  NOTHING,
  openBudget,
  reserve,
  settle,
  type TokenUsage,
  totalTokens,
} from '@firecrew/model-route';
import type { RouteRules } from './route-rules.ts';

/** What was used over one route. */
export interface RouteUsage {
  /** Calls that were forwarded. */
  readonly calls: number;
  /** Calls of which the upstream did not say what they cost. */
  readonly unreadCalls: number;
  readonly refused: number;
  readonly usage: TokenUsage;
  /** What the budget was charged with, the calls without a known cost as they were reserved. */
  readonly charged: Amount;
  readonly isBudgetReached: boolean;
}

/** What one call holds of the budget. */
export interface Held {
  readonly amount: Amount;
  readonly model: string;
}

/** Why a call got nothing. */
export interface NoRoom {
  readonly refusal: BudgetRefusal;
  readonly detail: string;
}

/** Keeps the budget of one route, and counts. Everything in it happens at once: no two calls see the same room. */
export class BudgetKeeper {
  readonly #rules: RouteRules;
  #budget: Budget;
  #counts = { calls: 0, unreadCalls: 0, refused: 0 };
  #usage: TokenUsage = NO_USAGE;
  #charged: Amount = NOTHING;
  #isReached = false;

  constructor(rules: RouteRules) {
    this.#rules = rules;
    this.#budget = openBudget(rules.budget);
  }

  /** Holds what all requests of a call may cost together, or says why there is no room; null is a cost that nobody can say. */
  hold(asks: readonly Ask[] | null): Held | NoRoom {
    const { budget } = this.#rules;
    if (asks === null && (budget.tokens !== null || budget.micros !== null))
      return { refusal: 'cost_unknown', detail: 'nobody can say what this call costs, and the model route has a budget' };
    const amount = this.#amountOf(asks ?? []);
    if (amount === undefined)
      return { refusal: 'model_not_priced', detail: 'the price table of the operator has no such model, and a budget in money is set' };
    const result = reserve(this.#budget, amount);
    if (result.verdict === 'refused') {
      this.#isReached ||= result.reason === 'budget_reached';
      return { refusal: result.reason, detail: this.#describe(result.reason, amount) };
    }
    this.#budget = result.budget;
    this.#counts.calls += 1;
    return { amount, model: asks?.[0]?.model ?? '' };
  }

  /** For a call that costs nothing. */
  holdNothing(): Held {
    this.#counts.calls += 1;
    return { amount: NOTHING, model: '' };
  }

  /** Ends a call. Gives what it was charged with. */
  end(held: Held, usage: TokenUsage | undefined): Amount {
    const price = this.#rules.prices?.[held.model];
    const used = usage && { tokens: totalTokens(usage), micros: price === undefined ? 0 : costOf(price, usage) };
    this.#budget = settle(this.#budget, held.amount, used);
    if (usage === undefined) this.#counts.unreadCalls += 1;
    else this.#usage = addUsage(this.#usage, usage);
    const charged = used ?? held.amount;
    this.#charged = add(this.#charged, charged);
    return charged;
  }

  refused(): void {
    this.#counts.refused += 1;
  }

  get isReached(): boolean {
    return this.#isReached;
  }

  summary(): RouteUsage {
    return { ...this.#counts, usage: this.#usage, charged: this.#charged, isBudgetReached: this.#isReached };
  }

  #describe(reason: BudgetRefusal, amount: Amount): string {
    const { limit, spent, reserved } = this.#budget;
    const tokens = limit.tokens === null ? '' : `, of ${limit.tokens} tokens ${spent.tokens} are spent and ${reserved.tokens} held`;
    const money =
      limit.micros === null ? '' : `, of ${limit.micros / 1e6} in money ${spent.micros / 1e6} are spent and ${reserved.micros / 1e6} held`;
    const what = `this call may cost ${amount.tokens} tokens${limit.micros === null ? '' : ` and ${amount.micros / 1e6} in money`}${tokens}${money}`;
    return reason === 'budget_reserved'
      ? `${what}; try again when calls under way have ended`
      : `the budget of this turn is reached, and the turn ends: ${what}`;
  }

  #amountOf(asks: readonly Ask[]): Amount | undefined {
    const { prices, budget } = this.#rules;
    let sum = NOTHING;
    for (const { model, inputTokens, outputTokens } of asks) {
      const price = prices?.[model];
      if (price === undefined && budget.micros !== null) return undefined;
      const output = outputTokens ?? 0;
      sum = add(sum, { tokens: inputTokens + output, micros: price === undefined ? 0 : highestCost(price, inputTokens, output) });
    }
    return sum;
  }
}
