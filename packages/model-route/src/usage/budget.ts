import type { BudgetRefusal } from '../reasons.ts';

/** An amount of what budgets are in: tokens, and millionths of a unit of money. */
export interface Amount {
  readonly tokens: number;
  readonly micros: number;
}

/** What may be used; null limits nothing. */
export interface BudgetLimit {
  readonly tokens: number | null;
  readonly micros: number | null;
}

/** A budget at one moment. What is reserved is held for calls under way. */
export interface Budget {
  readonly limit: BudgetLimit;
  readonly spent: Amount;
  readonly reserved: Amount;
}

export const NOTHING: Amount = { tokens: 0, micros: 0 };

/** A budget of which nothing is used. */
export function openBudget(limit: BudgetLimit): Budget {
  return { limit, spent: NOTHING, reserved: NOTHING };
}

/** Whether there was room, and the budget after it. */
export type Reservation =
  | { readonly verdict: 'reserved'; readonly reason: 'within_budget'; readonly budget: Budget }
  | { readonly verdict: 'refused'; readonly reason: Extract<BudgetRefusal, 'budget_reached' | 'budget_reserved'> };

/**
 * Holds an amount for a call before it is forwarded. `budget_reserved` says that there may be room once calls under way have settled,
 * `budget_reached` that there will be none.
 */
export function reserve(budget: Budget, amount: Amount): Reservation {
  const { limit, spent, reserved } = budget;
  if (fits(limit, add(add(spent, reserved), amount)))
    return { verdict: 'reserved', reason: 'within_budget', budget: { ...budget, reserved: add(reserved, amount) } };
  return { verdict: 'refused', reason: fits(limit, add(spent, amount)) ? 'budget_reserved' : 'budget_reached' };
}

/** Ends a reservation. `used` is what the call cost; a call that did not say so is charged as it was reserved. */
export function settle(budget: Budget, amount: Amount, used: Amount | undefined): Budget {
  const { reserved, spent } = budget;
  return {
    ...budget,
    reserved: { tokens: reserved.tokens - amount.tokens, micros: reserved.micros - amount.micros },
    spent: add(spent, used ?? amount),
  };
}

/** Both together. */
export function add(left: Amount, right: Amount): Amount {
  return { tokens: left.tokens + right.tokens, micros: left.micros + right.micros };
}

function fits(limit: BudgetLimit, amount: Amount): boolean {
  return (limit.tokens === null || amount.tokens <= limit.tokens) && (limit.micros === null || amount.micros <= limit.micros);
}
