import { BUILT_IN_RECIPES } from './built-in-recipes.ts';
import { fillPlaceholders, MAX_RECIPE_PHASES, placeholdersOf, type Recipe, type RecipePhase } from './parse-recipe.ts';
import { PHASE_KINDS } from './phase-config.ts';
import { type PlanReason, type PlanRefusal, type PlanRefused, quote, type RecipeReason, refuseAll } from './plan-reasons.ts';
import { type Plan, parsePhases } from './validate-plan.ts';

/** The recipes of this build, or others that `parseRecipe` read, sorted by name. */
export function listRecipes(recipes: readonly Recipe[] = BUILT_IN_RECIPES): readonly Recipe[] {
  return [...recipes].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** The recipe of exactly that name; undefined for any other, never a default. */
export function findRecipe(name: string, recipes: readonly Recipe[] = BUILT_IN_RECIPES): Recipe | undefined {
  return recipes.find((recipe) => recipe.name === name);
}

/**
 * The phases of a recipe with its inputs put in. A blank input counts as not given. The phases are checked like those of a plan, except that
 * every kind of phase is allowed.
 */
export function expandRecipe(
  recipe: Recipe,
  inputs: Readonly<Record<string, string | undefined>>,
): { readonly verdict: 'expanded'; readonly plan: Plan } | PlanRefused<RecipeReason | PlanReason> {
  const given = new Map(
    Object.entries(inputs).flatMap(([name, text]) => (text === undefined || text.trim() === '' ? [] : [[name, text.trim()]])),
  );
  const [first, ...others] = refuseInputs(recipe, Object.keys(inputs), given);
  if (first !== undefined) return refuseAll<RecipeReason | PlanReason>(first, others);
  const kept = recipe.phases.filter((phase) => phase.onlyWith === undefined || given.has(phase.onlyWith));
  if (kept.length === 0)
    return refuseAll<RecipeReason | PlanReason>(
      { reason: 'recipe_empty', message: `the recipe ${recipe.name} has no phase for these inputs` },
      [],
    );
  const parsed = parsePhases(
    kept.map((phase) => settingsOf(phase, given)),
    { kinds: PHASE_KINDS, maxPhases: MAX_RECIPE_PHASES },
  );
  return parsed.verdict === 'valid' ? { verdict: 'expanded', plan: parsed.plan } : parsed;
}

function refuseInputs(recipe: Recipe, names: readonly string[], given: ReadonlyMap<string, string>): PlanRefusal<RecipeReason>[] {
  const known = recipe.inputs.map((input) => input.name);
  const unknown = names.filter((name) => !known.includes(name));
  const missing = recipe.inputs.filter((input) => input.required && !given.has(input.name));
  return [
    ...unknown.map((name) => ({
      reason: 'recipe_unknown_input' as const,
      message: `the recipe ${recipe.name} takes no input ${quote(name)}; it takes: ${known.join(', ')}`,
    })),
    ...missing.map((input) => ({
      reason: 'recipe_missing_input' as const,
      message: `the recipe ${recipe.name} needs the input ${input.name}: ${input.summary}`,
    })),
  ];
}

function settingsOf({ settings }: RecipePhase, given: ReadonlyMap<string, string>): Readonly<Record<string, unknown>> {
  const filled = Object.entries(settings).flatMap(([key, value]) => {
    if (typeof value !== 'string') return [[key, value] as const];
    const absent = placeholdersOf(value).some((name) => !given.has(name));
    return absent ? [] : [[key, fillPlaceholders(value, given)] as const];
  });
  return Object.fromEntries(filled);
}
