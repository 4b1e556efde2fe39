/** Why a plan is refused; closed, in the order they are looked for. Those from `plan_unknown_kind` on are looked for phase by phase. */
export const PLAN_REASONS = [
  'plan_malformed',
  'plan_empty',
  'plan_too_many_phases',
  'plan_unknown_kind',
  'plan_blank_task',
  'plan_inert_key',
  'plan_unknown_key',
  'plan_bad_value',
] as const;
/** One member of {@link PLAN_REASONS}. */
export type PlanReason = (typeof PLAN_REASONS)[number];

/** Why a recipe cannot be read or used; closed, in the order they are looked for. Its phases add those of a plan. */
export const RECIPE_REASONS = [
  'recipe_malformed',
  'recipe_unknown_placeholder',
  'recipe_unknown_input',
  'recipe_missing_input',
  'recipe_empty',
] as const;
/** One member of {@link RECIPE_REASONS}. */
export type RecipeReason = (typeof RECIPE_REASONS)[number];

/** One refusal with its machine-readable reason and one sentence for people. */
export interface PlanRefusal<Reason> {
  readonly reason: Reason;
  readonly message: string;
}

/** A refused document: the first refusal of the order, and all of them, so that one retry can mend all. */
export interface PlanRefused<Reason> extends PlanRefusal<Reason> {
  readonly verdict: 'refused';
  readonly refusals: readonly PlanRefusal<Reason>[];
}

export function refuseAll<Reason>(first: PlanRefusal<Reason>, others: readonly PlanRefusal<Reason>[]): PlanRefused<Reason> {
  return { verdict: 'refused', ...first, refusals: [first, ...others] };
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Text of a document for a message: in quotes and bounded. */
export function quote(text: string): string {
  return JSON.stringify(text.slice(0, 64));
}
