import type { Budget } from './budgets.ts';
import type { BudgetDenial } from './reasons.ts';

/** What was used up of a budget: bytes of tunnels in both directions, and tunnels opened. */
export interface BudgetUse {
  readonly bytes: number;
  readonly connections: number;
}

/** A budget with what was used of it. */
export interface ChargedBudget {
  readonly budget: Budget;
  readonly used: BudgetUse;
}

/** A budget that lets no more through. */
export interface SpentBudget<Reason extends BudgetDenial = BudgetDenial> {
  readonly reason: Reason;
  readonly budget: Budget;
}

/** Why an open tunnel ends before its end. */
export type BytesSpent = Extract<BudgetDenial, `${string}_bytes_spent`>;

/** Whether one more tunnel may be opened: the first budget that is spent, by tunnels or by bytes, or undefined. */
export function decideTunnel(charged: readonly ChargedBudget[]): SpentBudget | undefined {
  for (const { budget, used } of charged) {
    if (budget.connections !== undefined && used.connections >= budget.connections)
      return { reason: `${budget.scope}_connections_spent`, budget };
    if (budget.bytes !== undefined && used.bytes >= budget.bytes) return { reason: `${budget.scope}_bytes_spent`, budget };
  }
  return undefined;
}

/**
 * How many of the next `bytes` may still pass: what the tightest budget has left, to the byte. Where that is less than asked for, `spent`
 * names the budget, and of equally tight ones the first.
 */
export function decideBytes(
  charged: readonly ChargedBudget[],
  bytes: number,
): { readonly granted: number; readonly spent?: SpentBudget<BytesSpent> | undefined } {
  let granted = bytes;
  let tightest: Budget | undefined;
  for (const { budget, used } of charged) {
    if (budget.bytes === undefined) continue;
    // A budget that was lowered below what is used has nothing left, not less than nothing.
    const left = Math.max(0, budget.bytes - used.bytes);
    if (left >= granted) continue;
    granted = left;
    tightest = budget;
  }
  return tightest === undefined ? { granted } : { granted, spent: { reason: `${tightest.scope}_bytes_spent`, budget: tightest } };
}

/** The budget as verdicts and audit lines name it: `budget .example.com: 1000 bytes`. */
export function formatBudget({ reason, budget }: SpentBudget): string {
  const isBytes = reason === 'host_bytes_spent' || reason === 'turn_bytes_spent';
  return `budget ${budget.label}: ${isBytes ? `${budget.bytes} bytes` : `${budget.connections} connections`}`;
}
