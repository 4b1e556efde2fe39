import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  applyTurnResult,
  buildTopology,
  type Execution,
  MAX_PARALLEL,
  nextTurns,
  parseCheckpoint,
  planSteps,
  planWaves,
  type StepRecord,
  startExecution,
  type Topology,
  type TopologyKind,
  topologyKinds,
} from '../src/index.ts';

const graph = (kind: TopologyKind, members: number, rounds?: number): Topology => {
  const built = buildTopology(
    kind,
    Array.from({ length: members }, (_, at) => `r${at}`),
    { rounds },
  );
  if (built.verdict === 'refused') throw new Error(built.message);
  return built.topology;
};
const record = (turn: { step: number; nodeId: string }, over: Partial<StepRecord> = {}): StepRecord => ({
  step: turn.step,
  nodeId: turn.nodeId,
  result: 'succeeded',
  outcome: 'completed',
  report: `report ${turn.step}`,
  ...over,
});
const apply = (execution: Execution, entry: StepRecord): Execution => {
  const applied = applyTurnResult(execution, entry);
  if (applied.verdict === 'refused') throw new Error(applied.reason);
  return applied.execution;
};
const steps = (execution: Execution): number[] => nextTurns(execution).map((turn) => turn.step);
const reload = (execution: Execution): Execution => {
  const parsed = parseCheckpoint(JSON.parse(JSON.stringify(execution)));
  if (parsed.verdict === 'refused') throw new Error(parsed.message);
  expect(parsed.execution).toEqual(execution);
  return parsed.execution;
};

describe('turns that run at the same time', () => {
  it('are one by default', () => {
    expect(planWaves(graph('fan_out_fan_in', 5)).map((wave) => wave.length)).toEqual([1, 1, 1, 1, 1]);
    expect(steps(startExecution(graph('debate', 4)))).toEqual([0]);
  });

  it('are those of a level that wait for nothing of each other, at most as many as allowed', () => {
    const topology = graph('fan_out_fan_in', 6);
    const waves = (most: number) => planWaves(topology, most).map((wave) => wave.map((step) => step.step));
    expect(waves(6)).toEqual([[0], [1, 2, 3, 4], [5]]);
    expect(waves(3)).toEqual([[0], [1, 2, 3], [4], [5]]);
  });

  it('start from the same tree, that of the groups before theirs', () => {
    let execution = apply(startExecution(graph('fan_out_fan_in', 4), { maxParallel: 2 }), record({ step: 0, nodeId: 'n0' }));
    expect(nextTurns(execution).map((turn) => turn.sees)).toEqual([[0], [0]]);
    execution = apply(execution, record({ step: 2, nodeId: 'n2' }));
    expect(nextTurns(execution).map(({ step, sees }) => ({ step, sees }))).toEqual([{ step: 1, sees: [0] }]);
    execution = apply(execution, record({ step: 1, nodeId: 'n1' }));
    expect(nextTurns(execution).map(({ step, sees }) => ({ step, sees }))).toEqual([{ step: 3, sees: [0, 1, 2] }]);
  });

  it('are still recorded when one beside them failed, and nothing is started after it', () => {
    const started = apply(startExecution(graph('fan_out_fan_in', 4), { maxParallel: 2 }), record({ step: 0, nodeId: 'n0' }));
    const failed = apply(started, record({ step: 1, nodeId: 'n1' }, { result: 'failed', outcome: 'timed_out' }));
    expect([failed.status, steps(failed)]).toEqual(['failed', []]);
    const both = apply(failed, record({ step: 2, nodeId: 'n2' }));
    expect(both.status).toBe('failed');
    expect(both.steps.map((step) => step.step)).toEqual([0, 1, 2]);
    expect(applyTurnResult(both, record({ step: 3, nodeId: 'n3' }))).toMatchObject({ verdict: 'refused', reason: 'not_running' });
    expect(reload(both)).toEqual(both);
  });

  it.each([0, -1, 1.5, MAX_PARALLEL + 1])('cannot be %d', (maxParallel) => {
    expect(() => startExecution(graph('mesh', 2), { maxParallel })).toThrow(expect.objectContaining({ code: 'parallel_invalid' }));
  });
});

describe('rounds', () => {
  it('of a review end once every reviewer is satisfied, and the author reworks no more', () => {
    let execution = startExecution(graph('review_loop', 3, 3), { maxParallel: 2 });
    execution = apply(execution, record({ step: 0, nodeId: 'n0' }));
    execution = apply(execution, record({ step: 1, nodeId: 'n1' }, { satisfied: true }));
    expect(execution.status).toBe('running');
    execution = apply(execution, record({ step: 2, nodeId: 'n2' }, { satisfied: true }));
    expect(execution.status).toBe('completed');
    expect(reload(execution).steps).toHaveLength(3);
  });

  it('of a review go on while one reviewer is not satisfied, up to the last', () => {
    let execution = startExecution(graph('review_loop', 3, 2));
    const seen: number[] = [];
    for (let [due] = nextTurns(execution); due !== undefined; [due] = nextTurns(execution)) {
      seen.push(due.step);
      execution = apply(execution, record(due, { satisfied: due.nodeId === 'n1' }));
    }
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('of a debate may end early; the one who decides still runs and reads the last report of each', () => {
    let execution = startExecution(graph('debate', 3, 3), { maxParallel: 2 });
    execution = apply(execution, record({ step: 0, nodeId: 'n0' }, { satisfied: true }));
    execution = apply(execution, record({ step: 1, nodeId: 'n1' }, { satisfied: true }));
    const [judge] = nextTurns(execution);
    expect(judge).toMatchObject({ step: 6, nodeId: 'n2', sees: [0, 1], earlier: [{ step: 0 }, { step: 1 }] });
    expect(apply(execution, record({ step: 6, nodeId: 'n2' })).status).toBe('completed');
  });

  it('of other shapes are never left out', () => {
    let execution = startExecution(graph('hub_spoke', 3, 1));
    for (let [due] = nextTurns(execution); due !== undefined; [due] = nextTurns(execution))
      execution = apply(execution, record(due, { satisfied: true }));
    expect(execution.steps.map((step) => step.nodeId)).toEqual(['n0', 'n1', 'n2', 'n0']);
  });

  it('that were left out cannot be recorded or stored', () => {
    let execution = startExecution(graph('review_loop', 2, 2));
    execution = apply(execution, record({ step: 0, nodeId: 'n0' }));
    execution = apply(execution, record({ step: 1, nodeId: 'n1' }, { satisfied: true }));
    const late = record({ step: 2, nodeId: 'n0' });
    expect(applyTurnResult(execution, late)).toMatchObject({ reason: 'not_running' });
    expect(parseCheckpoint({ ...execution, steps: [...execution.steps, late] })).toMatchObject({ reason: 'steps_out_of_order' });
  });
});

/** A graph, what each of its turns comes to, and how the run is interrupted. */
const runs = fc
  .record({
    entry: fc.constantFrom(...topologyKinds()),
    extra: fc.nat(5),
    rounds: fc.nat(2),
    maxParallel: fc.integer({ min: 1, max: MAX_PARALLEL }),
    failAt: fc.option(fc.nat(23), { nil: undefined }),
    satisfied: fc.array(fc.boolean(), { minLength: 24, maxLength: 24 }),
    picks: fc.array(fc.nat(5), { minLength: 24, maxLength: 24 }),
    reloads: fc.array(fc.boolean(), { minLength: 24, maxLength: 24 }),
  })
  .map(({ entry, extra, rounds, ...rest }) => ({
    ...rest,
    topology: graph(entry.kind, Math.min(entry.maxMembers, entry.minMembers + extra), Math.min(entry.maxRounds, entry.minRounds + rounds)),
  }));
type Run = typeof runs extends fc.Arbitrary<infer T> ? T : never;

/** Runs to the end; `pick` chooses which of the turns under way ends next. A failed group is waited for. */
function drive(
  run: Run,
  pick: (at: number, count: number) => number,
  reloads: readonly boolean[],
): { execution: Execution; log: string[] } {
  let execution = startExecution(run.topology, { maxParallel: run.maxParallel });
  let open = [...nextTurns(execution)];
  const log: string[] = [];
  for (let at = 0; open.length > 0; at += 1) {
    const [turn] = open.splice(pick(at, open.length) % open.length, 1);
    if (turn === undefined) break;
    log.push(`${turn.step} reads ${turn.earlier.map((item) => item.step).join()} sees ${turn.sees.join()}`);
    const over = { satisfied: run.satisfied[turn.step] === true, result: turn.step === run.failAt ? 'failed' : 'succeeded' } as const;
    execution = apply(execution, record(turn, over));
    if (reloads[at] === true) execution = reload(execution);
    const due = nextTurns(execution);
    open = [...open, ...due.filter((next) => open.every((item) => item.step !== next.step))];
  }
  return { execution, log };
}

describe('an execution of any shape', () => {
  it('resumed from any of its checkpoints has the same history as one that ran through', () => {
    fc.assert(
      fc.property(runs, (run) => {
        const through = drive(run, () => 0, []);
        const resumed = drive(run, () => 0, run.reloads);
        expect(resumed).toEqual(through);
      }),
      { numRuns: 200 },
    );
  });

  it('comes to the same state whichever of the turns at once ends first', () => {
    fc.assert(
      fc.property(runs, (run) => {
        const inOrder = drive(run, () => 0, []);
        const mixed = drive(run, (at) => run.picks[at] ?? 0, run.reloads);
        expect(mixed.execution).toEqual(inOrder.execution);
        expect([...mixed.log].sort()).toEqual([...inOrder.log].sort());
      }),
      { numRuns: 200 },
    );
  });

  it('starts no turn before all it reads are over, runs none twice, and never more at once than allowed', () => {
    fc.assert(
      fc.property(runs, (run) => {
        const plan = planSteps(run.topology);
        for (const wave of planWaves(run.topology, run.maxParallel)) {
          expect(wave.length).toBeLessThanOrEqual(run.maxParallel);
          for (const step of wave) for (const other of wave) expect(step.reads).not.toContain(other.step);
        }
        const { execution, log } = drive(run, (at) => run.picks[at] ?? 0, []);
        expect(new Set(log).size).toBe(log.length);
        expect(execution.status).toBe(execution.steps.some((step) => step.result === 'failed') ? 'failed' : 'completed');
        if (execution.status === 'completed' && run.satisfied.every((one) => !one)) expect(execution.steps).toHaveLength(plan.length);
      }),
      { numRuns: 200 },
    );
  });

  it('numbers its steps alike whatever may run at once', () => {
    fc.assert(
      fc.property(runs, ({ topology, maxParallel }) => {
        expect(planWaves(topology, maxParallel).flat()).toEqual(planSteps(topology));
      }),
    );
  });
});
