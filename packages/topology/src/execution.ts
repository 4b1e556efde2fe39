/*
 *              applyTurnResult(succeeded), more turns
 *                  +---------------+
 *                  v               |
 *   start ----> running -----------+---- applyTurnResult(succeeded), last turn ----> completed
 *                  |
 *                  +---- applyTurnResult(failed) ----> failed <--+
 *                                                        |       | applyTurnResult of a turn that ran beside it
 *                                                        +-------+
 *
 * The state is plain JSON and is its own checkpoint: what is not in it has not happened. Records stand in the order of their steps, so
 * turns that run at once leave the same state whichever ends first.
 */
import { CHECKPOINT_VERSION, MAX_REPORT_LENGTH } from './limits.ts';
import { planSteps, planWaves, type Step } from './plan-steps.ts';
import type { Topology } from './validate-topology.ts';
import { type Standing, walkWaves } from './walk-waves.ts';

/** One finished turn. */
export interface StepRecord {
  readonly step: number;
  readonly nodeId: string;
  readonly result: 'succeeded' | 'failed';
  /** Outcome of the turn, as the mission names it. */
  readonly outcome: string;
  /** The closing text, at most {@link MAX_REPORT_LENGTH} characters. */
  readonly report: string;
  /** The member asks for no further round; in shapes that settle, a round in which all of them say so is the last. */
  readonly satisfied?: boolean;
}

/** Where a run stands; plain JSON, so it is its own checkpoint. */
export interface Execution {
  readonly version: typeof CHECKPOINT_VERSION;
  readonly topology: Topology;
  readonly status: 'running' | 'completed' | 'failed';
  /** Turns that may run at once; absent = 1. */
  readonly maxParallel?: number;
  /** In the order of their steps; a failed one is in the last group. */
  readonly steps: readonly StepRecord[];
}

/** A turn that is due, with the closing reports it reads. */
export interface DueTurn extends Step {
  readonly earlier: ReadonlyArray<{
    readonly step: number;
    readonly nodeId: string;
    readonly role: string;
    readonly round: number;
    readonly report: string;
  }>;
  /** Steps whose files are in the tree this turn starts from: all of the groups before its own, ascending. */
  readonly sees: readonly number[];
}

/** What came of reporting a turn. `repeated` = this step was recorded before, with the same result. */
export type Applied =
  | { readonly verdict: 'applied' | 'repeated'; readonly execution: Execution }
  | {
      readonly verdict: 'refused';
      readonly reason: 'not_running' | 'step_not_due' | 'wrong_node' | 'contradicts_record';
      readonly execution: Execution;
    };

/**
 * A run before its first turn. With a `maxParallel` above 1 the turns of a group start from the same tree: the caller merges their results,
 * in the order of the steps, before the next group starts, and a conflict fails the run. Throws `topology_invalid` and `parallel_invalid`.
 */
export function startExecution(topology: Topology, options: { readonly maxParallel?: number } = {}): Execution {
  const { maxParallel = 1 } = options;
  planWaves(topology, maxParallel);
  return { version: CHECKPOINT_VERSION, topology, status: 'running', ...(maxParallel === 1 ? {} : { maxParallel }), steps: [] };
}

/** The turns that are to run now, those that run already included; none after the end. Asking again changes nothing. */
export function nextTurns(execution: Execution): readonly DueTurn[] {
  if (execution.status !== 'running') return [];
  const plan = planSteps(execution.topology);
  const { due, past } = standingOf(execution);
  return due.map((step) => ({ ...step, earlier: earlierOf(step, plan, execution), sees: past }));
}

/** Records the result of a turn that is due. Reports may arrive more than once; a step's first result stands. */
export function applyTurnResult(execution: Execution, result: StepRecord): Applied {
  const known = execution.steps.find((step) => step.step === result.step);
  if (known !== undefined) {
    if (known.nodeId !== result.nodeId || known.result !== result.result)
      return { verdict: 'refused', reason: 'contradicts_record', execution };
    return { verdict: 'repeated', execution };
  }
  // A turn that ran beside a failed one is recorded as well: what it made is not lost.
  const due = standingOf(execution).due.find((step) => step.step === result.step);
  if (due === undefined) return { verdict: 'refused', reason: execution.status === 'running' ? 'step_not_due' : 'not_running', execution };
  if (due.nodeId !== result.nodeId) return { verdict: 'refused', reason: 'wrong_node', execution };
  const steps = [...execution.steps, { ...result, report: clip(result.report) }].sort((a, b) => a.step - b.step);
  return { verdict: 'applied', execution: withStatus({ ...execution, steps }) };
}

/** The groups as far as the records of a run reach. */
export function standingOf(execution: Pick<Execution, 'topology' | 'maxParallel' | 'steps'>): Standing {
  const records = new Map(execution.steps.map((record) => [record.step, record]));
  return walkWaves(execution.topology, execution.maxParallel ?? 1, records);
}

/** The run with the status that its records give it. */
export function withStatus(execution: Execution): Execution {
  const { failed, wave } = standingOf(execution);
  return { ...execution, status: failed ? 'failed' : wave.length === 0 ? 'completed' : 'running' };
}

/** The reports a turn reads; for a turn that was left out, the last one its node gave. */
function earlierOf(due: Step, plan: readonly Step[], execution: Execution): DueTurn['earlier'] {
  const read = new Map<number, DueTurn['earlier'][number]>();
  for (const number of due.reads) {
    const wanted = plan[number];
    if (wanted === undefined) continue;
    const record = execution.steps.findLast((item) => item.nodeId === wanted.nodeId && item.step <= number);
    const step = record === undefined ? undefined : plan[record.step];
    if (record === undefined || step === undefined) continue;
    read.set(step.step, { step: step.step, nodeId: step.nodeId, role: step.role, round: step.round, report: record.report });
  }
  return [...read.values()].sort((a, b) => a.step - b.step);
}

/** A report says most at its end. */
function clip(report: string): string {
  return report.length <= MAX_REPORT_LENGTH ? report : report.slice(-MAX_REPORT_LENGTH).replace(/^[\udc00-\udfff]/, '');
}
