import { type Execution, type StepRecord, standingOf, withStatus } from './execution.ts';
import { CHECKPOINT_VERSION, MAX_PARALLEL, MAX_REPORT_LENGTH, MAX_STEPS } from './limits.ts';
import { planSteps } from './plan-steps.ts';
import { type Refusal, refuse, type TopologyReason } from './reasons.ts';
import { isObject, validateTopology } from './validate-topology.ts';

const KEYS = ['version', 'topology', 'status', 'maxParallel', 'steps'];
const RECORD_KEYS = ['step', 'nodeId', 'result', 'outcome', 'report', 'satisfied'];

/** Reads a stored checkpoint; one that cannot be read fails the run with its reason and never starts it over. */
export function parseCheckpoint(document: unknown): { readonly verdict: 'valid'; readonly execution: Execution } | Refusal<TopologyReason> {
  if (!isObject(document)) return refuse('not_an_object', 'the checkpoint is no object');
  if (document.version !== CHECKPOINT_VERSION) return refuse('unknown_version', `the checkpoint is not of version ${CHECKPOINT_VERSION}`);
  const extra = Object.keys(document).find((key) => !KEYS.includes(key));
  if (extra !== undefined) return refuse('unknown_key', `the checkpoint has the unknown key ${JSON.stringify(extra.slice(0, 64))}`);
  const checked = validateTopology(document.topology);
  if (checked.verdict === 'refused') return checked;
  const { maxParallel } = document;
  if (maxParallel !== undefined && !isParallel(maxParallel))
    return refuse('bad_field', `the checkpoint has no number of turns at once from 1 to ${MAX_PARALLEL}`);
  if (!Array.isArray(document.steps) || document.steps.length > MAX_STEPS)
    return refuse('bad_field', 'the checkpoint has no list of steps');
  const list: readonly unknown[] = document.steps;
  const steps: StepRecord[] = [];
  for (const item of list) {
    const record = parseRecord(item);
    if (record === undefined) return refuse('bad_field', `step ${steps.length} of the checkpoint cannot be read`);
    steps.push(record);
  }
  const read: Execution = {
    version: CHECKPOINT_VERSION,
    topology: checked.topology,
    status: 'running',
    ...(maxParallel === undefined ? {} : { maxParallel }),
    steps,
  };
  const odd = oddRecord(read);
  if (odd !== undefined) return refuse('steps_out_of_order', `step ${odd} of the checkpoint is not one that was due`);
  const execution = withStatus(read);
  if (document.status !== execution.status) return refuse('bad_field', 'the status of the checkpoint contradicts its steps');
  return { verdict: 'valid', execution };
}

/** The first record that no order of events can have left. */
function oddRecord(execution: Execution): number | undefined {
  const { past, wave } = standingOf(execution);
  const possible = new Set([...past, ...wave.map((step) => step.step)]);
  const plan = planSteps(execution.topology);
  let last = -1;
  for (const record of execution.steps) {
    if (record.step <= last || !possible.has(record.step) || plan[record.step]?.nodeId !== record.nodeId) return record.step;
    last = record.step;
  }
  return undefined;
}

function parseRecord(value: unknown): StepRecord | undefined {
  if (!isObject(value) || Object.keys(value).some((key) => !RECORD_KEYS.includes(key))) return undefined;
  const { step, nodeId, result, outcome, report, satisfied } = value;
  if (typeof step !== 'number' || typeof nodeId !== 'string' || typeof outcome !== 'string' || typeof report !== 'string') return undefined;
  if (!Number.isSafeInteger(step) || report.length > MAX_REPORT_LENGTH) return undefined;
  if (result !== 'succeeded' && result !== 'failed') return undefined;
  if (satisfied !== undefined && typeof satisfied !== 'boolean') return undefined;
  return { step, nodeId, result, outcome, report, ...(satisfied === undefined ? {} : { satisfied }) };
}

function isParallel(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_PARALLEL;
}
