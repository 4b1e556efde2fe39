/*
 *              applyTurnResult(succeeded), more steps
 *                  +---------------+
 *                  v               |
 *   start ----> running -----------+---- applyTurnResult(succeeded), last step ----> completed
 *                  |
 *                  +---- applyTurnResult(failed) ----> failed
 *
 * The state is plain JSON and is its own checkpoint: what is not in it has not happened.
 */
import { CHECKPOINT_VERSION, MAX_REPORT_LENGTH } from './limits.ts';
import { planSteps, type Step } from './plan-steps.ts';
import { type Refusal, refuse, type TopologyReason } from './reasons.ts';
import { isObject, type Topology, validateTopology } from './validate-topology.ts';

/** One finished turn. */
export interface StepRecord {
  readonly step: number;
  readonly nodeId: string;
  readonly result: 'succeeded' | 'failed';
  /** Outcome of the turn, as the mission names it. */
  readonly outcome: string;
  /** The closing text, at most {@link MAX_REPORT_LENGTH} characters. */
  readonly report: string;
}

/** Where a run stands; plain JSON, so it is its own checkpoint. */
export interface Execution {
  readonly version: typeof CHECKPOINT_VERSION;
  readonly topology: Topology;
  readonly status: 'running' | 'completed' | 'failed';
  /** In order, from step 0, without gaps; a failed one is the last. */
  readonly steps: readonly StepRecord[];
}

/** A turn that is due, with the closing reports it reads. */
export interface DueTurn extends Step {
  readonly earlier: ReadonlyArray<{ readonly nodeId: string; readonly role: string; readonly report: string }>;
}

/** What came of reporting a turn. `repeated` = this step was recorded before, with the same result. */
export type Applied =
  | { readonly verdict: 'applied' | 'repeated'; readonly execution: Execution }
  | {
      readonly verdict: 'refused';
      readonly reason: 'not_running' | 'step_not_due' | 'wrong_node' | 'contradicts_record';
      readonly execution: Execution;
    };

/** A run before its first turn. */
export function startExecution(topology: Topology): Execution {
  return { version: CHECKPOINT_VERSION, topology, status: 'running', steps: [] };
}

/** The turns to run now: one while the run is going, none after its end. Asking again changes nothing. */
export function nextTurns(execution: Execution): readonly DueTurn[] {
  if (execution.status !== 'running') return [];
  const plan = planSteps(execution.topology);
  const due = plan[execution.steps.length];
  if (due === undefined) return [];
  const earlier = due.reads.flatMap((nodeId) => {
    const record = execution.steps.find((step) => step.nodeId === nodeId);
    const role = plan.find((step) => step.nodeId === nodeId)?.role ?? '';
    return record === undefined ? [] : [{ nodeId, role, report: record.report }];
  });
  return [{ ...due, earlier }];
}

/** Records the result of the due turn. Reports may arrive more than once; a step's first result stands. */
export function applyTurnResult(execution: Execution, result: StepRecord): Applied {
  const known = execution.steps.find((step) => step.step === result.step);
  if (known !== undefined) {
    if (known.nodeId !== result.nodeId || known.result !== result.result)
      return { verdict: 'refused', reason: 'contradicts_record', execution };
    return { verdict: 'repeated', execution };
  }
  if (execution.status !== 'running') return { verdict: 'refused', reason: 'not_running', execution };
  const plan = planSteps(execution.topology);
  const due = plan[execution.steps.length];
  if (due === undefined || due.step !== result.step) return { verdict: 'refused', reason: 'step_not_due', execution };
  if (due.nodeId !== result.nodeId) return { verdict: 'refused', reason: 'wrong_node', execution };
  const { step, nodeId, outcome } = result;
  const steps = [...execution.steps, { step, nodeId, result: result.result, outcome, report: clip(result.report) }];
  return { verdict: 'applied', execution: { ...execution, steps, status: statusOf(steps, plan.length) } };
}

/** Reads a stored checkpoint; one that cannot be read fails the run with its reason and never starts it over. */
export function parseCheckpoint(document: unknown): { readonly verdict: 'valid'; readonly execution: Execution } | Refusal<TopologyReason> {
  if (!isObject(document)) return refuse('not_an_object', 'the checkpoint is no object');
  if (document.version !== CHECKPOINT_VERSION) return refuse('unknown_version', `the checkpoint is not of version ${CHECKPOINT_VERSION}`);
  const checked = validateTopology(document.topology);
  if (checked.verdict === 'refused') return checked;
  if (!Array.isArray(document.steps)) return refuse('bad_field', 'the checkpoint has no list of steps');
  const plan = planSteps(checked.topology);
  const list: readonly unknown[] = document.steps;
  const steps: StepRecord[] = [];
  for (const item of list) {
    const record = parseRecord(item);
    if (record === undefined) return refuse('bad_field', `step ${steps.length} of the checkpoint cannot be read`);
    const planned = plan[steps.length];
    if (planned === undefined || planned.step !== record.step || planned.nodeId !== record.nodeId || steps.at(-1)?.result === 'failed') {
      return refuse('steps_out_of_order', `step ${steps.length} of the checkpoint is not the one that was due`);
    }
    steps.push(record);
  }
  const execution: Execution = { version: CHECKPOINT_VERSION, topology: checked.topology, steps, status: statusOf(steps, plan.length) };
  if (document.status !== execution.status) return refuse('bad_field', 'the status of the checkpoint contradicts its steps');
  return { verdict: 'valid', execution };
}

function parseRecord(value: unknown): StepRecord | undefined {
  if (!isObject(value)) return undefined;
  const { step, nodeId, result, outcome, report } = value;
  if (typeof step !== 'number' || typeof nodeId !== 'string' || typeof outcome !== 'string' || typeof report !== 'string') return undefined;
  if (result !== 'succeeded' && result !== 'failed') return undefined;
  return { step, nodeId, result, outcome, report };
}

function statusOf(steps: readonly StepRecord[], planned: number): Execution['status'] {
  if (steps.at(-1)?.result === 'failed') return 'failed';
  return steps.length >= planned ? 'completed' : 'running';
}

/** A report says most at its end. */
function clip(report: string): string {
  return report.length <= MAX_REPORT_LENGTH ? report : report.slice(-MAX_REPORT_LENGTH).replace(/^[\udc00-\udfff]/, '');
}
