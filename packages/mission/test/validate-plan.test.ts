import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  lookUpPhaseKey,
  MAX_COMMAND_CHARS,
  MAX_PLAN_PHASES,
  MAX_TASK_CHARS,
  PLAN_REASONS,
  PLANNABLE_KINDS,
  phaseConfigKeys,
  validatePlan,
} from '../src/index.ts';

const phase = (over: object = {}): object => ({ kind: 'coding', task: 'do it', ...over });
const plan = (...phases: unknown[]): object => ({ phases });
const inert = phaseConfigKeys().filter((entry) => entry.readers.length === 0);

describe('a plan', () => {
  it.each<[string, unknown, RegExp]>([
    ['plan_malformed', null, /no object/],
    ['plan_malformed', [phase()], /no object/],
    ['plan_malformed', { phases: [phase()], order: 1 }, /unknown key "order"/],
    ['plan_malformed', { phases: 'all' }, /no list/],
    ['plan_malformed', plan('coding'), /phase 0 is no object/],
    ['plan_empty', plan(), /no phases/],
    ['plan_too_many_phases', plan(phase(), phase(), phase(), phase(), phase()), /5 phases; the limit is 4/],
    ['plan_unknown_kind', plan(phase(), phase({ kind: 'review' })), /phase 1.*"review".*research, coding, benchmark, security_scan/],
    ['plan_unknown_kind', plan(phase({ kind: 'preview' })), /"preview"/],
    ['plan_unknown_kind', plan(phase({ kind: 7 })), /no text/],
    ['plan_unknown_kind', plan(phase({ kind: 'Coding' })), /"Coding"/],
    ['plan_blank_task', plan(phase({ task: ' \n' })), /phase 0/],
    ['plan_blank_task', plan({ kind: 'coding' }), /phase 0/],
    ['plan_inert_key', plan(phase({ commitPolicy: 'x' })), /nothing reads commitPolicy of phase 0/],
    ['plan_unknown_key', plan(phase({ order: 1 })), /unknown key "order".*task, setup/],
    ['plan_bad_value', plan(phase({ allowEmpty: 'yes' })), /allowEmpty of phase 0 is not true or false/],
    ['plan_bad_value', plan(phase({ task: ['a'] })), /task of phase 0/],
    ['plan_bad_value', plan(phase({ doneWhenCheck: 'a\0b' })), /doneWhenCheck of phase 0.*NUL/],
    ['plan_bad_value', plan(phase({ task: 'x'.repeat(MAX_TASK_CHARS + 1) })), /at most 100000/],
    ['plan_bad_value', plan(phase({ setup: 'x'.repeat(MAX_COMMAND_CHARS + 1) })), /at most 32768/],
  ])('is refused by %s: %j', (reason, document, message) => {
    expect(validatePlan(document)).toMatchObject({ verdict: 'refused', reason, message: expect.stringMatching(message) });
  });

  it('is told every refusal at once, in the closed order, phase by phase', () => {
    const bad = phase({ kind: 'review', task: ' ', commitPolicy: 'x', order: 1, allowEmpty: 1 });
    const result = validatePlan(plan(phase(), bad, phase({ kind: 'x' }), phase(), phase()));
    expect(result.verdict === 'refused' && result.refusals.map((refusal) => refusal.reason)).toEqual([
      'plan_too_many_phases',
      'plan_unknown_kind',
      'plan_blank_task',
      'plan_inert_key',
      'plan_unknown_key',
      'plan_bad_value',
      'plan_unknown_kind',
    ]);
  });

  it('is told once of a setting that nothing reads, whatever its value', () => {
    const result = validatePlan(plan(phase({ maxIterations: 'many' })));
    expect(result.verdict === 'refused' && result.refusals.map((refusal) => refusal.reason)).toEqual(['plan_inert_key']);
  });

  it('that is far too long, or has a phase of far too many keys, is told of a bounded number of refusals', () => {
    const long = validatePlan(plan(...Array.from({ length: 5000 }, () => ({}))));
    expect(long.verdict === 'refused' && long.refusals.length).toBeLessThanOrEqual(1 + 2 * MAX_PLAN_PHASES);
    const wide = validatePlan(plan(phase(Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`k${at}`, 1])))));
    expect(wide.verdict === 'refused' && wide.refusals).toHaveLength(10);
    expect(wide.verdict === 'refused' && wide.message.length).toBeLessThan(300);
  });

  it('of 1 and of 4 phases is accepted, and each plannable kind is', () => {
    for (const kind of PLANNABLE_KINDS)
      expect(validatePlan(plan(phase({ kind })))).toEqual({ verdict: 'valid', plan: { phases: [{ kind, task: 'do it' }] } });
    const result = validatePlan(plan(...[0, 1, 2, 3].map((at) => phase({ task: `task ${at}` }))));
    expect(result.verdict === 'valid' && result.plan.phases.map((item) => item.task)).toEqual(['task 0', 'task 1', 'task 2', 'task 3']);
  });

  it('leaves blank optional texts out, and keeps a flag whenever it was given', () => {
    const given = { setup: ' ', doneWhenCheck: ' npm test ', allowEmpty: false };
    expect(validatePlan(plan(phase(given)))).toEqual({
      verdict: 'valid',
      plan: { phases: [{ kind: 'coding', task: 'do it', doneWhenCheck: 'npm test', allowEmpty: false }] },
    });
    expect(validatePlan(plan(phase({ setup: null, allowEmpty: null })))).toEqual({
      verdict: 'valid',
      plan: { phases: [{ kind: 'coding', task: 'do it' }] },
    });
  });

  it.each(inert.map((entry) => entry.key))('cannot set %s, which nothing reads', (key) => {
    expect(validatePlan(plan(phase({ [key]: 1 })))).toMatchObject({ reason: 'plan_inert_key' });
  });

  it('never breaks the parser, and what is accepted holds settings alone that something reads', () => {
    const value = fc.oneof(fc.constantFrom('', ' ', 'x', true, false, null, 3), fc.anything());
    const item = fc.oneof(
      fc.dictionary(fc.constantFrom('kind', 'task', 'setup', 'doneWhenCheck', 'doneWhen', 'allowEmpty', 'odd', '__proto__'), value),
      fc.record({ kind: fc.constantFrom(...PLANNABLE_KINDS, 'review'), task: fc.string(), allowEmpty: fc.option(fc.boolean()) }),
    );
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.record({ phases: fc.array(item, { maxLength: 5 }) })), (document) => {
        const result = validatePlan(document);
        if (result.verdict === 'refused')
          return result.refusals.length > 0 && result.refusals.every((refusal) => PLAN_REASONS.includes(refusal.reason));
        const { phases } = result.plan;
        // What was accepted is accepted again, as it is, at the approval.
        expect(validatePlan(JSON.parse(JSON.stringify(result.plan)))).toEqual(result);
        return (
          phases.length <= MAX_PLAN_PHASES &&
          phases.every((one) => Object.keys(one).every((key) => key === 'kind' || lookUpPhaseKey(key).status === 'live'))
        );
      }),
      { numRuns: 500 },
    );
  });
});

describe('what others can see', () => {
  it('is fixed: kinds, limits and reasons', () => {
    expect(PLANNABLE_KINDS).toEqual(['research', 'coding', 'benchmark', 'security_scan']);
    expect(MAX_PLAN_PHASES).toBe(4);
    expect(PLAN_REASONS).toEqual([
      'plan_malformed',
      'plan_empty',
      'plan_too_many_phases',
      'plan_unknown_kind',
      'plan_blank_task',
      'plan_inert_key',
      'plan_unknown_key',
      'plan_bad_value',
    ]);
  });
});
