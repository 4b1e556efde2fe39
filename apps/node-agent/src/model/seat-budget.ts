import { DEFAULT_OUTPUT_TOKENS } from '@firecrew/backend';
import { CodedError } from '@firecrew/base';
import type { TurnSpec } from '@firecrew/protocol';
import type { ModelLaunch } from './model-launch.ts';

/**
 * The route of an attempt, kept to its share of the budget of its seat: of each bound the smaller one holds. Throws `seat_budget_unkept` where the
 * route could not keep it: the turn is not started then.
 */
export function limitLaunch(launch: ModelLaunch | null, budget: TurnSpec['modelBudget']): ModelLaunch | null {
  if (launch === null || budget === undefined) return launch;
  const refuse = (why: string): CodedError =>
    new CodedError('seat_budget_unkept', `the model route of this node cannot keep the budget of a seat: ${why}`, {
      action: 'Correct `modelRoutes` of the node, take the budget from the seat, or keep its missions to another node.',
    });
  if (launch.format === 'pass_through') throw refuse('the format pass_through looks into no answer');
  if (budget.micros !== null && launch.prices === null) throw refuse('it has no price table, and the budget is in money');
  return {
    ...launch,
    outputCap: launch.outputCap ?? DEFAULT_OUTPUT_TOKENS,
    budget: { tokens: smaller(launch.budget.tokens, budget.tokens), micros: smaller(launch.budget.micros, budget.micros) },
  };
}

function smaller(left: number | null, right: number | null): number | null {
  if (left === null || right === null) return left ?? right;
  return Math.min(left, right);
}
