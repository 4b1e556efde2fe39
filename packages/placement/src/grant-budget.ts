/** Tokens, and millionths of a unit of money. */
export interface BudgetAmount {
  readonly tokens: number;
  readonly micros: number;
}

/** What may be used of each; null bounds nothing. */
export interface BudgetCap {
  readonly tokens: number | null;
  readonly micros: number | null;
}

/** What is used or held in a period. A turn counts for the day on which it was placed. */
export interface BudgetUse {
  readonly day: BudgetAmount;
  readonly total: BudgetAmount;
}

/** The budget of a seat over all its turns, and what is left of it. */
export interface SeatBudget {
  /** Most that one attempt is given. */
  readonly turn: BudgetCap;
  readonly day: BudgetCap;
  readonly total: BudgetCap;
  /** Charged for attempts that have ended. */
  readonly used: BudgetUse;
  /** Given to attempts that have not. */
  readonly held: BudgetUse;
}

/** Least that an attempt is given: with less it could not make one call, and a turn would be started for nothing. */
export const MIN_GRANT: BudgetAmount = { tokens: 1_000, micros: 1_000 };

/**
 * What the next attempt of a seat may use, or why it waits: `seat_budget_held` where attempts that run hold what is left, `seat_budget_reached`
 * where nothing is.
 */
export type BudgetGrant =
  | { readonly verdict: 'granted'; readonly grant: BudgetCap }
  | { readonly verdict: 'seat_budget_held' | 'seat_budget_reached'; readonly unit: keyof BudgetAmount; readonly period: keyof BudgetUse };

/**
 * Gives an attempt its share of what is neither used nor held: an equal part for each turn that the seat may still start beside it
 * (`freeTurns`, this one counted), at least {@link MIN_GRANT}. What is given is held until the attempt ends, so turns at once never outrun
 * the budget together.
 */
export function grantBudget(budget: SeatBudget, freeTurns: number): BudgetGrant {
  const grant: { tokens: number | null; micros: number | null } = { tokens: null, micros: null };
  let held: BudgetGrant | undefined;
  for (const unit of ['tokens', 'micros'] as const) {
    const least = MIN_GRANT[unit];
    let share = budget.turn[unit];
    for (const period of ['day', 'total'] as const) {
      const cap = budget[period][unit];
      if (cap === null) continue;
      const left = cap - budget.used[period][unit];
      // What is used up for good says more than what is only held.
      if (left < least) return { verdict: 'seat_budget_reached', unit, period };
      const room = left - budget.held[period][unit];
      if (room < least) held ??= { verdict: 'seat_budget_held', unit, period };
      const part = Math.max(least, Math.floor(room / Math.max(1, freeTurns)));
      share = share === null ? part : Math.min(share, part);
    }
    grant[unit] = share;
  }
  return held ?? { verdict: 'granted', grant };
}

/** The budget with a grant held on it. */
export function holdGrant(budget: SeatBudget, grant: BudgetCap): SeatBudget {
  const { day, total } = budget.held;
  const more = { tokens: grant.tokens ?? 0, micros: grant.micros ?? 0 };
  return { ...budget, held: { day: addAmounts(day, more), total: addAmounts(total, more) } };
}

/** How an attempt of a seat came to its end. */
export interface AttemptEnd {
  /** What it was given; null where the seat had no budget. */
  readonly grant: BudgetCap | null;
  /** What its node reported; absent where it reported no result at all, null where the result says that it had no model route. */
  readonly reported?: BudgetAmount | null;
  /** Kind of its outcome. */
  readonly outcome: string;
}

/**
 * What an attempt is charged with: what its node reported; nothing where it never started; and all that it was given where it was lost, since it
 * may have used that.
 */
export function chargeAttempt({ grant, reported, outcome }: AttemptEnd): BudgetAmount {
  if (reported !== undefined) return reported ?? { tokens: 0, micros: 0 };
  if (outcome === 'refused' || outcome === 'failed_to_start') return { tokens: 0, micros: 0 };
  return { tokens: grant?.tokens ?? 0, micros: grant?.micros ?? 0 };
}

function addAmounts(left: BudgetAmount, right: BudgetAmount): BudgetAmount {
  return { tokens: left.tokens + right.tokens, micros: left.micros + right.micros };
}
