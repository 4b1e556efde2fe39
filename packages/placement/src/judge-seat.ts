import { type BudgetCap, type BudgetGrant, grantBudget, type SeatBudget } from './grant-budget.ts';

/** How many turns a seat allows at once, and how many run under it. */
export interface SeatRoom {
  readonly id: string;
  readonly role: string;
  readonly maxTurns: number;
  /** Attempts under the seat that have not ended: each holds a lease of it. */
  readonly held: number;
  /** Absent where the seat has none. */
  readonly budget?: SeatBudget;
}

/** The answer to a turn whose seat has no lease or no budget left; it waits, as it waits for memory. */
export interface SeatBusy {
  readonly verdict: 'seat_busy' | 'seat_budget_held' | 'seat_budget_reached';
  readonly transient: true;
  readonly message: string;
  readonly report: readonly string[];
}

/** One more turn may run under the seat, with what it is given of the seat's budget. */
export interface SeatFree {
  readonly verdict: 'free';
  /** Absent where the seat has no budget. */
  readonly grant?: BudgetCap;
}

/**
 * Whether one more turn may run under the seat. A seat that is not among those that are known has no room: what could not be read is never a
 * free seat.
 */
export function judgeSeat(seatId: string, room: SeatRoom | undefined): SeatFree | SeatBusy {
  const wait = (verdict: SeatBusy['verdict'], message: string): SeatBusy => ({ verdict, transient: true, message, report: [] });
  if (room === undefined) return wait('seat_busy', `The seat ${seatId} is not linked, so nothing is started under it.`);
  const { role, held, maxTurns, budget } = room;
  if (held >= maxTurns) {
    const turns = `${held} ${held === 1 ? 'turn runs' : 'turns run'}`;
    return wait(
      'seat_busy',
      `The seat of the role ${role} allows ${maxTurns} at once, and ${turns} under it. The turn is queued until one of them ends.`,
    );
  }
  if (budget === undefined) return { verdict: 'free' };
  const given = grantBudget(budget, maxTurns - held);
  return given.verdict === 'granted' ? { verdict: 'free', grant: given.grant } : wait(given.verdict, explainBudget(role, budget, given));
}

function explainBudget(role: string, budget: SeatBudget, { verdict, unit, period }: Exclude<BudgetGrant, { verdict: 'granted' }>): string {
  const amount = (value: number): string => (unit === 'tokens' ? `${value} tokens` : `${value / 1_000_000} in money`);
  const limit = amount(budget[period][unit] ?? 0);
  const numbers = `of ${limit}${period === 'day' ? ' a day' : ''} ${amount(budget.used[period][unit])} are used and ${amount(budget.held[period][unit])} held`;
  const until =
    verdict === 'seat_budget_held'
      ? 'The turn is queued until one that runs gives back what it does not use.'
      : period === 'day'
        ? 'The turn is queued until the next day (UTC) or a larger budget.'
        : 'The turn is queued until the budget is made larger.';
  return `The budget of the seat of the role ${role} is ${verdict === 'seat_budget_held' ? 'held by turns that run' : 'reached'}: ${numbers}. ${until}`;
}
