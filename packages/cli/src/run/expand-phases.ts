import { expandRecipe, findRecipe, listRecipes, type Recipe } from '@firecrew/mission';
import type { CreateMissionInput } from '@firecrew/protocol';
import { UsageError } from '../exit-codes.ts';

/** What the options of a `run` say about its phases. */
export interface PhaseInputs {
  readonly task: string;
  readonly setup: string | undefined;
  readonly check: string | undefined;
  readonly allowEmpty: boolean;
}

/** The recipe a run is composed from, and the inputs that are no option of their own. */
export interface RecipeChoice {
  readonly name: string;
  readonly inputs: Readonly<Record<string, string>>;
}

/** The recipe of that name. Throws {@link UsageError} `usage_wrong` for none. */
export function demandRecipe(name: string): Recipe {
  const recipe = findRecipe(name);
  if (recipe !== undefined) return recipe;
  throw new UsageError('usage_wrong', `there is no recipe ${JSON.stringify(name)}`, {
    id: name,
    action: `There are ${listRecipes()
      .map((one) => one.name)
      .join(', ')}.`,
  });
}

/** The phases of a mission: one that does the task, or those of a recipe. Throws {@link UsageError} `usage_wrong` for what a recipe refuses. */
export function expandPhases(inputs: PhaseInputs, choice: RecipeChoice | undefined): CreateMissionInput['phases'] {
  const { task, setup, check, allowEmpty } = inputs;
  if (choice === undefined)
    return [
      {
        kind: 'coding',
        task,
        allowEmpty,
        ...(setup === undefined ? {} : { setup }),
        ...(check === undefined ? {} : { doneWhenCheck: check }),
      },
    ];
  const recipe = demandRecipe(choice.name);
  const given = { ...choice.inputs, task, ...(setup === undefined ? {} : { setup }), ...(check === undefined ? {} : { check }) };
  const expanded = expandRecipe(recipe, given);
  if (expanded.verdict === 'expanded') return expanded.plan.phases.map((phase) => ({ ...phase }));
  throw new UsageError('usage_wrong', expanded.refusals.map((refusal) => refusal.message).join('; '), {
    id: recipe.name,
    action: `Look at its inputs with: firecrew recipe show ${recipe.name}`,
  });
}
