import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  expandRecipe,
  findRecipe,
  listRecipes,
  lookUpPhaseKey,
  MAX_RECIPE_PHASES,
  parseRecipe,
  RECIPE_REASONS,
  type Recipe,
} from '../src/index.ts';

const input = (name: string, required = true): object => ({ name, summary: 's', required });
const recipe = (over: object = {}): object => ({
  name: 'one',
  summary: 'One phase.',
  inputs: [input('task'), input('check', false)],
  phases: [{ settings: { kind: 'coding', task: 'Do {{task}}.', doneWhenCheck: '{{check}}' } }],
  ...over,
});
const read = (document: unknown): Recipe => {
  const parsed = parseRecipe(document);
  if (parsed.verdict === 'refused') throw new Error(parsed.message);
  return parsed.recipe;
};
const settings = (over: object): object => recipe({ phases: [{ settings: { kind: 'coding', task: '{{task}}', ...over } }] });

describe('the recipes of this build', () => {
  it('are these, sorted by name', () => {
    expect(listRecipes().map((entry) => entry.name)).toEqual([
      'change',
      'change-then-verify',
      'investigate',
      'measured-change',
      'plan-then-change',
      'scan-then-fix',
      'test-first',
    ]);
  });

  it.each(listRecipes())('$name is a recipe that the strict parser takes, and survives JSON', (entry) => {
    expect(read(JSON.parse(JSON.stringify(entry)))).toEqual(entry);
  });

  it.each(listRecipes())('$name gives phases from its required inputs alone, and from all of them', (entry) => {
    for (const inputs of [entry.inputs.filter((one) => one.required), entry.inputs]) {
      const expanded = expandRecipe(entry, Object.fromEntries(inputs.map((one) => [one.name, `the ${one.name}`])));
      expect(expanded).toMatchObject({ verdict: 'expanded' });
      const phases = expanded.verdict === 'expanded' ? expanded.plan.phases : [];
      expect(phases).toHaveLength(entry.phases.length);
      expect(JSON.stringify(phases)).not.toMatch(/\{\{|\}\}/);
      for (const phase of phases)
        for (const key of Object.keys(phase)) expect(key === 'kind' || lookUpPhaseKey(key).status === 'live').toBe(true);
      for (const phase of phases.filter((one) => one.kind === 'coding')) expect(phase.task).toContain('the task');
    }
  });

  it('are found by exactly their name', () => {
    expect(findRecipe('change')?.name).toBe('change');
    for (const name of ['Change', 'change ', '', 'review']) expect(findRecipe(name)).toBeUndefined();
  });

  it('are joined by others that were read', () => {
    const own = [read(recipe())];
    expect(listRecipes(own).map((entry) => entry.name)).toEqual(['one']);
    expect(findRecipe('one', own)?.summary).toBe('One phase.');
  });
});

describe('a recipe', () => {
  it.each<[string, unknown, RegExp]>([
    ['recipe_malformed', null, /no object/],
    ['recipe_malformed', recipe({ extra: 1 }), /unknown key "extra"/],
    ['recipe_malformed', recipe({ name: 'Two Words' }), /no name/],
    ['recipe_malformed', recipe({ name: 'x'.repeat(65) }), /no name/],
    ['recipe_malformed', recipe({ summary: ' ' }), /no summary/],
    ['recipe_malformed', recipe({ summary: 'x'.repeat(501) }), /no summary/],
    ['recipe_malformed', recipe({ inputs: {} }), /no list/],
    ['recipe_malformed', recipe({ inputs: [{ name: 'task', summary: 's' }] }), /whether it is required/],
    ['recipe_malformed', recipe({ inputs: [input('Task')] }), /no name/],
    ['recipe_malformed', recipe({ inputs: [input('task'), input('task')] }), /twice/],
    ['recipe_malformed', recipe({ phases: [] }), /0 phases/],
    ['recipe_malformed', recipe({ phases: Array.from({ length: MAX_RECIPE_PHASES + 1 }, () => ({ settings: {} })) }), /7 phases/],
    ['recipe_malformed', recipe({ phases: [{ kind: 'coding' }] }), /unknown key "kind"/],
    ['recipe_malformed', recipe({ phases: [{ settings: 'x' }] }), /no settings/],
    ['recipe_unknown_placeholder', settings({ task: '{{tsak}}' }), /unknown input "tsak"/],
    ['recipe_unknown_placeholder', settings({ task: '{{ task }}' }), /unknown input " task "/],
    ['recipe_unknown_placeholder', settings({ doneWhenCheck: 'sh -c {{check}}' }), /mixes the input check/],
    ['recipe_unknown_placeholder', settings({ task: 'Do {{task}} until {{check}}.' }), /may be absent/],
    ['recipe_unknown_placeholder', recipe({ phases: [{ settings: {}, onlyWith: 'x' }] }), /unknown input "x"/],
  ])('is refused by %s: %j', (reason, document, message) => {
    expect(parseRecipe(document)).toMatchObject({ verdict: 'refused', reason, message: expect.stringMatching(message) });
  });

  it.each<[string, unknown, Readonly<Record<string, string>>]>([
    ['recipe_missing_input', recipe(), { check: 'true' }],
    ['recipe_missing_input', recipe(), { task: ' \n' }],
    ['recipe_unknown_input', recipe(), { task: 'x', chekc: 'true' }],
    ['recipe_empty', recipe({ phases: [{ settings: { kind: 'coding', task: 'x' }, onlyWith: 'check' }] }), { task: 'x' }],
    ['plan_unknown_kind', settings({ kind: 'review' }), { task: 'x' }],
    ['plan_inert_key', settings({ commitPolicy: 'x' }), { task: 'x' }],
    ['plan_unknown_key', settings({ order: 1 }), { task: 'x' }],
    ['plan_bad_value', recipe(), { task: 'x', check: 'a\0b' }],
  ])('is not used by %s', (reason, document, inputs) => {
    expect(expandRecipe(read(document), inputs)).toMatchObject({ verdict: 'refused', reason });
  });

  it('is told every missing and unknown input at once', () => {
    const result = expandRecipe(
      read(recipe({ inputs: [input('task'), input('measure')], phases: [{ settings: { kind: 'coding', task: 'x' } }] })),
      {
        odd: 'x',
      },
    );
    expect(result.verdict === 'refused' && result.refusals.map((refusal) => refusal.reason)).toEqual([
      'recipe_unknown_input',
      'recipe_missing_input',
      'recipe_missing_input',
    ]);
  });

  it('leaves out a setting and a phase whose input is not given', () => {
    const two = read(
      recipe({
        phases: [
          { settings: { kind: 'coding', task: '{{task}}', doneWhenCheck: '{{check}}' } },
          { settings: { kind: 'coding', task: 'Make {{check}} pass.', allowEmpty: true }, onlyWith: 'check' },
        ],
      }),
    );
    expect(expandRecipe(two, { task: 'x' })).toEqual({ verdict: 'expanded', plan: { phases: [{ kind: 'coding', task: 'x' }] } });
    expect(expandRecipe(two, { task: 'x', check: 'true' })).toMatchObject({
      plan: { phases: [{ doneWhenCheck: 'true' }, { task: 'Make true pass.', allowEmpty: true }] },
    });
  });

  it('may have a preview, which no model may propose', () => {
    expect(expandRecipe(read(settings({ kind: 'preview' })), { task: 'x' })).toMatchObject({ plan: { phases: [{ kind: 'preview' }] } });
  });

  it('puts inputs in as they are, whatever they hold, once', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '{{task}}', '{{check}}', '$&', '$1', '$`', '{', '}', '"', '\\', "'"),
      minLength: 1,
    });
    fc.assert(
      fc.property(text, text, (task, check) => {
        expect(expandRecipe(read(recipe()), { task, check })).toEqual({
          verdict: 'expanded',
          plan: { phases: [{ kind: 'coding', task: `Do ${task}.`, doneWhenCheck: check }] },
        });
      }),
    );
  });

  it('never breaks its parser', () => {
    const document = fc.oneof(
      fc.anything(),
      fc.record({ name: fc.constant('x'), summary: fc.constant('s'), inputs: fc.anything(), phases: fc.anything() }),
    );
    fc.assert(
      fc.property(document, (value) => {
        const parsed = parseRecipe(value);
        return parsed.verdict === 'valid' || RECIPE_REASONS.includes(parsed.reason);
      }),
    );
  });
});

it('has a fixed list of reasons', () => {
  expect(RECIPE_REASONS).toEqual([
    'recipe_malformed',
    'recipe_unknown_placeholder',
    'recipe_unknown_input',
    'recipe_missing_input',
    'recipe_empty',
  ]);
});
