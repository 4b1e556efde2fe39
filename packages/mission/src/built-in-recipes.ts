import type { Recipe, RecipeInput } from './parse-recipe.ts';

const task: RecipeInput = { name: 'task', summary: 'What is wanted, in words.', required: true };
const setup: RecipeInput = {
  name: 'setup',
  summary: 'Command that prepares the tree, such as one that installs what it depends on.',
  required: false,
};
const check: RecipeInput = { name: 'check', summary: 'Shell command that exits 0 when the work is done.', required: false };
const needed: RecipeInput = { ...check, required: true };
const commands = { setup: '{{setup}}', doneWhenCheck: '{{check}}' } as const;

/** The recipes of this build, as data; `parseRecipe` accepts each. */
export const BUILT_IN_RECIPES: readonly Recipe[] = [
  {
    name: 'change',
    summary: 'One change, held to a check where one is given.',
    inputs: [task, setup, check],
    phases: [{ settings: { kind: 'coding', task: '{{task}}', ...commands } }],
  },
  {
    name: 'investigate',
    summary: 'An answer written down as a document; the rest of the tree stays as it is.',
    inputs: [task, setup],
    phases: [
      {
        settings: {
          kind: 'research',
          task: '{{task}}\n\nWrite what you find as Markdown files in the folder `findings` at the root of the tree, with the evidence for each claim: file and line, or the command and its output. Change no other file.',
          setup: '{{setup}}',
        },
      },
    ],
  },
  {
    name: 'plan-then-change',
    summary: 'A written plan first, then the change by somebody who reads it.',
    inputs: [task, setup, check],
    phases: [
      {
        settings: {
          kind: 'research',
          task: 'Plan the following work and do not do it:\n\n{{task}}\n\nWrite the plan to `PLAN.md` at the root of the tree: which files change and how, what could break, and how to tell that it is done.',
          setup: '{{setup}}',
        },
      },
      {
        settings: {
          kind: 'coding',
          task: '{{task}}\n\nIf there is a `PLAN.md` at the root of the tree, it was written for this work: follow it, depart from it where the code shows it wrong, and remove the file in the end.',
          ...commands,
        },
      },
    ],
  },
  {
    name: 'test-first',
    summary: 'Tests that fail first, then the code that makes them pass.',
    inputs: [task, setup, needed],
    phases: [
      {
        settings: {
          kind: 'coding',
          task: 'Write the tests for the following work and not the work itself:\n\n{{task}}\n\nThey must fail now, for the reason that the work is missing, and pass once it is done.',
          setup: '{{setup}}',
        },
      },
      {
        settings: {
          kind: 'coding',
          task: '{{task}}\n\nThe tests for it are in the tree and fail. Make them pass without weakening them.',
          ...commands,
        },
      },
    ],
  },
  {
    name: 'change-then-verify',
    summary: 'A change, then a second look by somebody who may correct it or leave it.',
    inputs: [task, setup, needed],
    phases: [
      { settings: { kind: 'coding', task: '{{task}}', ...commands } },
      {
        settings: {
          kind: 'coding',
          task: 'The following work was done in this tree by somebody else:\n\n{{task}}\n\nLook at it as a reviewer. Correct what is wrong; if all is well, change nothing.',
          ...commands,
          allowEmpty: true,
        },
      },
    ],
  },
  {
    name: 'measured-change',
    summary: 'A measurement, a change that is to improve it, and the measurement again.',
    inputs: [task, setup, { name: 'measure', summary: 'Command that prints the measurement and exits 0.', required: true }, check],
    phases: [
      {
        settings: {
          kind: 'benchmark',
          task: 'Run the command below and write its figures to `benchmarks/before.md`, with the machine it ran on. Change nothing else.\n\n{{measure}}',
          setup: '{{setup}}',
          doneWhenCheck: '{{measure}}',
        },
      },
      { settings: { kind: 'coding', task: '{{task}}\n\nThe figures before your change are in `benchmarks/before.md`.', ...commands } },
      {
        settings: {
          kind: 'benchmark',
          task: 'Run the command below and write its figures to `benchmarks/after.md`, beside those of `benchmarks/before.md` and with their ratios. Change nothing else.\n\n{{measure}}',
          setup: '{{setup}}',
          doneWhenCheck: '{{measure}}',
        },
      },
    ],
  },
  {
    name: 'scan-then-fix',
    summary: 'A security scan written down, then fixes for what it found.',
    inputs: [task, setup, check],
    phases: [
      {
        settings: {
          kind: 'security_scan',
          task: 'Look for weaknesses in this tree:\n\n{{task}}\n\nWrite them to `SECURITY-FINDINGS.md` at the root of the tree, each with file, line, how it is exploited and how bad that is; say what was not looked at. Change nothing else.',
          setup: '{{setup}}',
        },
      },
      {
        settings: {
          kind: 'coding',
          task: 'Fix the weaknesses that `SECURITY-FINDINGS.md` at the root of the tree lists, the worst first, each with a test where one is possible. Take fixed ones off the list.\n\nWhat was asked for:\n\n{{task}}',
          ...commands,
          allowEmpty: true,
        },
      },
    ],
  },
];
