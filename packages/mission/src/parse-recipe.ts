import { isObject, type PlanRefused, quote, type RecipeReason, refuseAll } from './plan-reasons.ts';

/** Most phases of a recipe. */
export const MAX_RECIPE_PHASES = 6;
/** Longest text of a recipe other than a task, in characters. */
export const MAX_RECIPE_TEXT = 500;

/** What a recipe is given; a placeholder of its phases stands for it. */
export interface RecipeInput {
  /** Lower-case letters. */
  readonly name: string;
  readonly summary: string;
  readonly required: boolean;
}

/**
 * One phase of a recipe: the settings of a phase, in which a task may hold `{{name}}` for any required input, and another text may be one
 * such placeholder as a whole. A setting that stands for an input that was not given is left out.
 */
export interface RecipePhase {
  readonly settings: Readonly<Record<string, unknown>>;
  /** The phase is left out where this input is not given. */
  readonly onlyWith?: string;
}

/** A named composition of phases; plain JSON. */
export interface Recipe {
  /** Lower-case words with `-` between. */
  readonly name: string;
  readonly summary: string;
  readonly inputs: readonly RecipeInput[];
  readonly phases: readonly RecipePhase[];
}

type Fields = Readonly<Record<string, unknown>>;
const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;

/** Parses a recipe (an untrusted document); unknown keys are refused. What its phases hold is checked when it is expanded. */
export function parseRecipe(document: unknown): { readonly verdict: 'valid'; readonly recipe: Recipe } | PlanRefused<RecipeReason> {
  const fields = fieldsOf(document, ['name', 'summary', 'inputs', 'phases'], 'the recipe');
  if (typeof fields === 'string') return malformed(fields);
  const { name } = fields;
  if (typeof name !== 'string' || name.length > 64 || !/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/.test(name))
    return malformed('the recipe has no name of lower-case words with "-" between');
  const summary = shortText(fields.summary);
  if (summary === undefined) return malformed(`the recipe ${name} has no summary of at most ${MAX_RECIPE_TEXT} characters`);
  const inputs = parseList(fields.inputs, parseInput);
  if (typeof inputs === 'string') return malformed(`inputs of the recipe ${name}: ${inputs}`);
  if (new Set(inputs.map((input) => input.name)).size !== inputs.length) return malformed(`an input of the recipe ${name} is there twice`);
  const phases = parseList(fields.phases, parsePhase);
  if (typeof phases === 'string') return malformed(`phases of the recipe ${name}: ${phases}`);
  if (phases.length === 0 || phases.length > MAX_RECIPE_PHASES)
    return malformed(`the recipe ${name} has ${phases.length} phases, not 1 to ${MAX_RECIPE_PHASES}`);
  const recipe = { name, summary, inputs, phases };
  const odd = oddPlaceholder(recipe);
  return odd === undefined ? { verdict: 'valid', recipe } : refuseAll({ reason: 'recipe_unknown_placeholder', message: odd }, []);
}

/** The names of the placeholders of a text. */
export function placeholdersOf(text: string): readonly string[] {
  return [...text.matchAll(PLACEHOLDER)].map((match) => match[1] ?? '');
}

/** The text with its placeholders replaced in one pass: what an input holds is never looked at again. */
export function fillPlaceholders(text: string, inputs: ReadonlyMap<string, string>): string {
  return text.replace(PLACEHOLDER, (whole, name: string) => inputs.get(name) ?? whole);
}

function oddPlaceholder({ name, inputs, phases }: Recipe): string | undefined {
  for (const [at, { settings, onlyWith }] of phases.entries()) {
    const where = `phase ${at} of the recipe ${name}`;
    if (onlyWith !== undefined && !inputs.some((input) => input.name === onlyWith))
      return `${where} depends on the unknown input ${quote(onlyWith)}`;
    for (const [key, value] of Object.entries(settings)) {
      if (typeof value !== 'string') continue;
      for (const placeholder of placeholdersOf(value)) {
        const input = inputs.find((known) => known.name === placeholder);
        if (input === undefined) return `${where} names the unknown input ${quote(placeholder)}`;
        const whole = value === `{{${placeholder}}}`;
        // A command is not put together from texts, since a shell would read what they hold.
        if (!whole && key !== 'task') return `${key} of ${where} mixes the input ${placeholder} with other text`;
        if (!whole && !input.required && onlyWith !== placeholder) return `${key} of ${where} names ${placeholder}, which may be absent`;
      }
    }
  }
  return undefined;
}

function parseInput(value: unknown): RecipeInput | string {
  const fields = fieldsOf(value, ['name', 'summary', 'required'], 'an input');
  if (typeof fields === 'string') return fields;
  const { name, required } = fields;
  const summary = shortText(fields.summary);
  if (typeof name !== 'string' || !/^[a-z]{1,32}$/.test(name)) return 'an input has no name of lower-case letters';
  if (summary === undefined) return `the input ${name} has no summary of at most ${MAX_RECIPE_TEXT} characters`;
  return typeof required === 'boolean' ? { name, summary, required } : `the input ${name} does not say whether it is required`;
}

function parsePhase(value: unknown): RecipePhase | string {
  const fields = fieldsOf(value, ['settings', 'onlyWith'], 'a phase');
  if (typeof fields === 'string') return fields;
  const { settings, onlyWith } = fields;
  if (!isObject(settings)) return 'a phase has no settings';
  if (onlyWith !== undefined && typeof onlyWith !== 'string') return 'onlyWith of a phase is no text';
  return { settings, ...(onlyWith === undefined ? {} : { onlyWith }) };
}

/** The items of a list, or the first thing that is wrong with it. */
function parseList<T extends object>(value: unknown, parse: (item: unknown) => T | string): readonly T[] | string {
  if (!Array.isArray(value)) return 'there is no list';
  const list: readonly unknown[] = value;
  const parsed = list.map(parse);
  return parsed.find((item) => typeof item === 'string') ?? parsed.filter((item) => typeof item !== 'string');
}

function fieldsOf(value: unknown, allowed: readonly string[], what: string): Fields | string {
  if (!isObject(value)) return `${what} is no object`;
  const extra = Object.keys(value).find((key) => !allowed.includes(key));
  return extra === undefined ? value : `${what} has the unknown key ${quote(extra)}`;
}

function shortText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' && value.length <= MAX_RECIPE_TEXT ? value : undefined;
}

function malformed(message: string): PlanRefused<RecipeReason> {
  return refuseAll({ reason: 'recipe_malformed', message }, []);
}
