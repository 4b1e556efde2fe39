import { describe, expect, it } from 'vitest';
import {
  applyTurnResult,
  buildTopology,
  composeTask,
  type Execution,
  MAX_REPORT_LENGTH,
  nextTurns,
  parseCheckpoint,
  type StepRecord,
  soloTopology,
  startExecution,
} from '../src/index.ts';

const pipeline = (count: number) => {
  const result = buildTopology(
    'pipeline',
    Array.from({ length: count }, (_, at) => `role ${at}`),
  );
  if (result.verdict === 'refused') throw new Error(result.message);
  return result.topology;
};
const result = (step: number, over: Partial<StepRecord> = {}): StepRecord => ({
  step,
  nodeId: `n${step}`,
  result: 'succeeded',
  outcome: 'completed',
  report: `report ${step}`,
  ...over,
});
const apply = (execution: Execution, record: StepRecord): Execution => {
  const applied = applyTurnResult(execution, record);
  if (applied.verdict === 'refused') throw new Error(applied.reason);
  return applied.execution;
};

describe('an execution', () => {
  it('of a single turn is due once and then completed', () => {
    const started = startExecution(soloTopology());
    expect(nextTurns(started)).toEqual([{ step: 0, nodeId: 'n0', role: 'engineer', round: 1, reads: [], earlier: [], sees: [] }]);
    const ended = apply(started, result(0));
    expect(ended.status).toBe('completed');
    expect(nextTurns(ended)).toEqual([]);
  });

  it('runs turns strictly one after the other, each with the reports it reads', () => {
    let execution = startExecution(pipeline(3));
    execution = apply(execution, result(0));
    execution = apply(execution, result(1));
    expect(nextTurns(execution)).toEqual([
      {
        step: 2,
        nodeId: 'n2',
        role: 'role 2',
        round: 1,
        reads: [1],
        earlier: [{ step: 1, nodeId: 'n1', role: 'role 1', round: 1, report: 'report 1' }],
        sees: [0, 1],
      },
    ]);
  });

  it('fails with the first failed turn and runs nothing after it', () => {
    const execution = apply(startExecution(pipeline(3)), result(0, { result: 'failed', outcome: 'gate_capped' }));
    expect(execution.status).toBe('failed');
    expect(nextTurns(execution)).toEqual([]);
    expect(applyTurnResult(execution, result(1))).toMatchObject({ verdict: 'refused', reason: 'not_running' });
  });

  it('takes a repeated report once, and never a contradicting one', () => {
    const execution = apply(startExecution(pipeline(2)), result(0));
    expect(applyTurnResult(execution, result(0))).toEqual({ verdict: 'repeated', execution });
    expect(applyTurnResult(execution, result(0, { result: 'failed' }))).toMatchObject({ verdict: 'refused', reason: 'contradicts_record' });
    expect(applyTurnResult(execution, result(0, { nodeId: 'n1' }))).toMatchObject({ verdict: 'refused', reason: 'contradicts_record' });
  });

  it('refuses a step that is not due, and another node', () => {
    const started = startExecution(pipeline(3));
    expect(applyTurnResult(started, result(1))).toMatchObject({ reason: 'step_not_due' });
    expect(applyTurnResult(started, result(0, { nodeId: 'n2' }))).toMatchObject({ reason: 'wrong_node' });
  });

  it('resumes with 2 completed at step 2', () => {
    const stored = JSON.stringify(apply(apply(startExecution(pipeline(3)), result(0)), result(1)));
    const parsed = parseCheckpoint(JSON.parse(stored));
    expect(parsed.verdict === 'valid' && nextTurns(parsed.execution).map((turn) => turn.step)).toEqual([2]);
  });

  it('keeps the end of a long report', () => {
    const execution = apply(startExecution(pipeline(2)), result(0, { report: `${'x'.repeat(MAX_REPORT_LENGTH)}END` }));
    expect(execution.steps[0]?.report).toHaveLength(MAX_REPORT_LENGTH);
    expect(execution.steps[0]?.report.endsWith('END')).toBe(true);
  });
});

describe('a checkpoint', () => {
  const good = apply(startExecution(pipeline(3)), result(0));

  it.each<[string, unknown]>([
    ['not_an_object', null],
    ['unknown_version', { ...good, version: 2 }],
    ['unknown_kind', { ...good, topology: { ...good.topology, kind: 'x' } }],
    ['bad_field', { ...good, steps: 'none' }],
    ['bad_field', { ...good, steps: [{ step: 0 }] }],
    ['steps_out_of_order', { ...good, steps: [result(1)] }],
    ['steps_out_of_order', { ...good, steps: [result(0), result(0)] }],
    ['steps_out_of_order', { ...good, status: 'failed', steps: [result(0, { result: 'failed' }), result(1)] }],
    ['bad_field', { ...good, status: 'completed' }],
    ['bad_field', { ...good, maxParallel: 0 }],
    ['bad_field', { ...good, steps: [{ ...result(0), report: 'x'.repeat(MAX_REPORT_LENGTH + 1) }] }],
    ['bad_field', { ...good, steps: [{ ...result(0), satisfied: 'yes' }] }],
    ['bad_field', { ...good, steps: [{ ...result(0), more: 1 }] }],
    ['unknown_key', { ...good, note: '' }],
  ])('that cannot be trusted fails by %s and never starts the run over', (reason, document) => {
    expect(parseCheckpoint(document)).toMatchObject({ verdict: 'refused', reason });
  });
});

describe('what a store holds already', () => {
  it('is read and written as it is: a single turn has no rounds and runs alone', () => {
    const stored = {
      version: 1,
      topology: { kind: 'solo', nodes: [{ id: 'n0', role: 'engineer' }], edges: [] },
      status: 'completed',
      steps: [{ step: 0, nodeId: 'n0', result: 'succeeded', outcome: 'completed', report: '' }],
    };
    expect(parseCheckpoint(stored)).toEqual({ verdict: 'valid', execution: stored });
    expect(startExecution(soloTopology())).toEqual({ ...stored, status: 'running', steps: [] });
  });
});

describe('the task text of a turn', () => {
  const first = { role: 'planner', round: 1, earlier: [], sees: [] };

  it('is the task alone for a crew of one', () => {
    expect(composeTask(first, ' do it\n', 1)).toBe('do it\n');
  });

  it('has role and task for the first turn, without a word of what came before', () => {
    expect(composeTask(first, 'do it', 2)).toBe('Your role: planner\n\ndo it\n');
  });

  it('has the notice and the reports in order for a later one, also without reports', () => {
    const earlier = [
      { step: 0, nodeId: 'n0', role: 'planner', round: 1, report: 'plan is in PLAN.md' },
      { step: 1, nodeId: 'n1', role: 'coder', round: 1, report: '  ' },
    ];
    const text = composeTask({ role: 'reviewer', round: 1, earlier, sees: [0, 1] }, 'do it', 3);
    expect(text).toMatch(/Your role: reviewer[\s\S]*do it[\s\S]*already holds the work[\s\S]*planner \(n0\)[\s\S]*PLAN\.md/);
    expect(text).not.toContain('coder');
    expect(composeTask({ ...first, sees: [0] }, 'do it', 3)).toContain('already holds the work');
  });

  it('tells a member that comes again which turn it is, and numbers the reports', () => {
    const earlier = [{ step: 3, nodeId: 'n0', role: 'author', round: 2, report: 'reworked' }];
    const text = composeTask({ role: 'author', round: 3, earlier, sees: [0, 1, 2, 3] }, 'do it', 2);
    expect(text).toMatch(/turn number 3[\s\S]*author \(n0, turn 2\)/);
  });
});
