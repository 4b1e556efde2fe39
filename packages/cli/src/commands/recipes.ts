import { listRecipes, type Recipe } from '@firecrew/mission';
import { renderTable } from '../render/table.ts';
import { demandRecipe } from '../run/expand-phases.ts';
import type { CommandContext } from './context.ts';

/** Inputs of a recipe that options of `run` give; the others are given by `--input`. */
const OPTION_INPUTS: readonly string[] = ['task', 'setup', 'check'];

/** `firecrew recipe list`: the recipes of this build; starts nothing. */
export function recipeListCommand(context: CommandContext, json: boolean): number {
  const recipes = listRecipes();
  if (json) context.out.line(JSON.stringify(recipes));
  else
    for (const line of renderTable(
      ['recipe', 'phases', 'what for'],
      recipes.map(({ name, phases, summary }) => [name, String(phases.length), summary]),
    ))
      context.out.line(line);
  return 0;
}

/** `firecrew recipe show NAME`: its inputs and phases. */
export function recipeShowCommand(context: CommandContext, name: string, json: boolean): number {
  const recipe = demandRecipe(name);
  if (json) context.out.line(JSON.stringify(recipe));
  else for (const line of renderRecipe(recipe)) context.out.line(line);
  return 0;
}

/** A recipe as lines. */
export function renderRecipe(recipe: Recipe): string[] {
  const inputs = recipe.inputs.map((input) => [
    OPTION_INPUTS.includes(input.name) ? `--${input.name}` : `--input ${input.name}=`,
    input.required ? 'required' : 'optional',
    input.summary,
  ]);
  const phases = recipe.phases.flatMap(({ settings, onlyWith }, index) => {
    const condition = onlyWith === undefined ? '' : `, only with --input ${onlyWith}=`;
    const checked = typeof settings.doneWhenCheck === 'string' ? ` (check: ${settings.doneWhenCheck})` : '';
    const task = typeof settings.task === 'string' ? settings.task.split('\n').filter((line) => line !== '') : [];
    return ['', `phase ${index + 1}: ${String(settings.kind)}${condition}${checked}`, ...task.map((line) => `  ${line}`)];
  });
  return [`${recipe.name}: ${recipe.summary}`, '', ...renderTable(['input', '', 'what it is'], inputs), ...phases];
}
