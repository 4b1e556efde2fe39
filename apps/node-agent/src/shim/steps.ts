import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { CodedError, codeOf } from '@firecrew/base';
import { commandHarness } from '@firecrew/harness';
import type { AttemptAnswer, Purpose } from '@firecrew/mission';
import type { RoundRecord } from '@firecrew/protocol';
import type { OpenLayer } from '@firecrew/rootfs';
import { CHECK_FEEDBACK_BYTES, type CheckResult, checkInputsChanged, checkIsDue, decideRound, type Gate } from '@firecrew/stop-gate';
import { rescueVmId, type Vm } from '@firecrew/vmm';
import { readManifestOfBlob } from '@firecrew/workspace';
import { vmName } from '../turn-folder/vm-folder-name.ts';
import { type AttemptContext, type AttemptState, roundRecord, type StagedTree } from './attempt-context.ts';
import { bootVm, proxyFault } from './boot-vm.ts';
import { changedPaths, collectTree, commitChange, shownPath } from './collect-tree.ts';
import { BUDGET_DETAIL } from './model-gate.ts';
import { noteShortages } from './note-shortages.ts';
import { OutputTail } from './output-tail.ts';
import { shownKey, tellNone } from './prepare-layer.ts';
import { restoreProtected } from './restore-protected.ts';
import { runCommand } from './run-command.ts';
import { inputFile, sendBlob, sendFiles } from './send-trees.ts';
import { commandBounds, oneLine, runSetup, shellCommand } from './shell-command.ts';
import { takeCheckpoints } from './take-checkpoints.ts';

const DONE: AttemptAnswer = { type: 'done' };
/** Time and output for opening what an agent closed to itself. */
const OPEN_TIMEOUT_MS = 60_000;
const OPEN_OUTPUT_BYTES = 64 * 1024;

/** Checks that every input is here as it was ordered, and reads the manifest of the base. */
export async function fetchInputs(context: AttemptContext): Promise<AttemptAnswer> {
  const { spec, state } = context;
  const blobs = [
    spec.workspace.blob,
    spec.base.blob,
    ...(spec.git === null ? [] : [spec.git]),
    ...spec.agent.files.map((file) => file.blob),
  ];
  for (const blob of blobs) {
    const found = await digestOf(inputFile(context, blob.digest));
    if (found !== blob.digest)
      throw new CodedError('input_damaged', `the input ${blob.digest} is not what was ordered`, { id: blob.digest });
  }
  const base = await readManifestOfBlob(inputFile(context, spec.base.blob.digest), { snapshotId: spec.base.snapshotId });
  state.base = base.entries;
  return DONE;
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of createReadStream(file)) hash.update(part as Buffer);
  return hash.digest('hex');
}

/** A VM that came so far that its disks may be at fault. */
const ENDED_AT_BOOT: readonly (string | undefined)[] = ['vm_ended_at_boot', 'vm_panicked_at_boot', 'vm_out_of_memory_at_boot'];

/** Boots a fresh VM, on the layer that was prepared for it. */
export async function boot(context: AttemptContext, purpose: Purpose, round: number): Promise<AttemptAnswer> {
  const { state } = context;
  state.vm = await bootOnLayer(context, vmName(round, purpose));
  state.isolation = state.vm.isolation;
  const fault = await proxyFault(state.vm);
  if (fault !== undefined) return { type: 'failed', detail: fault, outcome: { kind: 'refused', reason: 'egress_down' } };
  if (state.layer === null) return DONE;
  const message = `the VM lies on the layer ${shownKey(state.layer.key)}: its set-up is not run`;
  context.events.add({ kind: 'notice', level: 'info', code: 'setup_layer_used', message });
  return { type: 'done', isSetUp: true };
}

/** A layer is what a guest left: one with which no VM comes up goes, and the VM is booted without. */
async function bootOnLayer(context: AttemptContext, name: string): Promise<Vm> {
  const { layer } = context.state;
  try {
    return await bootVm(context, name, layer);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (layer === null || !ENDED_AT_BOOT.includes(codeOf(cause))) throw error;
    tellNone(context, error);
    await dropLayer(context, layer);
    return await bootVm(context, name, null);
  }
}

async function dropLayer(context: AttemptContext, layer: OpenLayer): Promise<void> {
  const { state, layers } = context;
  state.layer = null;
  state.noLayer.add(layer.key);
  await layer.close();
  if (typeof layers !== 'string') await layers.store.remove(layer.key);
}

/** Puts the tree and its host-made `.git` into the VM. */
export async function inject(context: AttemptContext): Promise<AttemptAnswer> {
  const { spec, state } = context;
  const vm = vmOf(context);
  const tree = state.tree === null ? inputFile(context, spec.workspace.blob.digest) : state.tree.file;
  if (state.layer === null) await sendBlob(vm, vm.guestPaths.workspace, tree);
  else tellReplaced(context, (await sendBlob(vm, vm.guestPaths.workspace, tree, 'over')).replaced ?? 0);
  if (spec.git !== null) await sendBlob(vm, `${vm.guestPaths.workspace}/.git`, inputFile(context, spec.git.digest));
  return DONE;
}

/** A tree's own files win over what the layer has in their place, as they would not over a set-up that ran after them. */
function tellReplaced(context: AttemptContext, paths: number): void {
  if (paths === 0) return;
  const message = `${paths} paths of the layer gave way to those of the tree`;
  context.events.add({ kind: 'notice', level: 'warning', code: 'setup_layer_replaced', message });
}

/** Runs the set-up with its own egress policy. */
export async function setUp(context: AttemptContext, purpose: Purpose, round: number, signal: AbortSignal): Promise<AttemptAnswer> {
  const { setup } = context.spec;
  if (setup === null) return DONE;
  const { command, timeoutMs } = setup;
  const heading = `set-up${purpose === 'verify' ? ' for the check' : ''}`;
  const run = { command, timeoutMs, id: `setup-${purpose}`, purpose, round, heading };
  const failure = await runSetup(context, vmOf(context), run, signal);
  return failure === undefined ? DONE : { type: 'failed', detail: failure, outcome: { kind: 'setup_failed' } };
}

/** Runs one round of the agent, taking checkpoints while it works. Its exit status decides nothing by itself: the gate does. */
export async function runAgent(context: AttemptContext, round: number, signal: AbortSignal): Promise<AttemptAnswer> {
  const { spec, state } = context;
  const vm = vmOf(context);
  const { taskDir, agentDir, workspace } = vm.guestPaths;
  const plan = commandHarness.planRound({
    task: spec.task,
    round,
    agentCmd: spec.agent.command,
    agentFiles: spec.agent.files.map((file) => ({ name: file.name, hostPath: inputFile(context, file.blob.digest) })),
    paths: { workspace, taskFile: `${taskDir}/task.txt`, feedbackFile: `${taskDir}/feedback.txt`, agentDir },
    env: spec.agent.env,
    contract: context.contract,
    ...(state.feedback === null ? {} : { feedback: state.feedback }),
  });
  if (plan.verdict === 'refused') return { type: 'failed', detail: plan.message, outcome: { kind: 'refused', reason: 'environment' } };
  await sendFiles(vm, plan.folders, plan.files);
  await context.gate.open('agent');
  context.model.open();
  context.log.heading(`round ${round}: ${oneLine(spec.agent.command)}`);
  context.events.add({ kind: 'agent.started', round, logOffset: context.log.bytes });
  const started = context.clock();
  state.exhausted = null;
  const checkpoints = takeCheckpoints(context, vm, round);
  try {
    const command = {
      id: `agent-${round}`,
      argv: plan.argv,
      cwd: plan.cwd,
      env: { ...plan.callerEnvironment, ...plan.platformEnvironment },
    };
    const end = await runCommand(
      vm,
      { ...command, ...commandBounds(context, Number.MAX_SAFE_INTEGER), onOutput: (bytes) => context.log.write(bytes) },
      signal,
    );
    const agent = { exitCode: end.exitCode, signal: end.signal, timedOut: end.kind === 'timed_out' };
    roundRecord(state, round).agent = agent;
    state.exhausted = noteShortages(context, 'the agent', end);
    context.events.add({ kind: 'agent.ended', round, ...agent, durationMs: context.clock() - started, survivors: end.survivors });
    if (!context.model.isBudgetReached) return DONE;
    return { type: 'failed', detail: BUDGET_DETAIL, outcome: { kind: 'budget_exceeded' } };
  } finally {
    await checkpoints.stop();
    context.model.close();
    await context.gate.close();
  }
}

/** Brings the tree back and compares it with the base, on the host. */
export async function collect(context: AttemptContext, round: number, rescue: boolean): Promise<AttemptAnswer> {
  const { spec, state } = context;
  context.model.close();
  await context.gate.close();
  const collected = await collectWhole(context, round, rescue);
  const paths = changedPaths(context, collected.entries);
  const restored = await restoreProtected(context, collected, paths, round);
  state.tree = restored.tree;
  state.checkpoint = false;
  state.restoredPaths = restored.paths;
  const now = restored.paths.length === 0 ? paths : changedPaths(context, restored.tree.entries);
  state.checkInputsChanged = spec.check === null ? [] : checkInputsChanged(now, spec.check.command).map((input) => shownPath(input.path));
  state.change = commitChange(context, restored.tree.entries);
  const changed = state.change === 'changed';
  roundRecord(state, round).changed = changed;
  context.events.add({ kind: 'collected', tree: restored.tree.captured, changed });
  const gate = gateOf(context);
  return { type: 'done', checkDue: gate !== undefined && checkIsDue(gate, changed) };
}

/** Collects a tree with everything that belongs to it: what its owner closed to itself is opened for a second try. */
async function collectWhole(context: AttemptContext, round: number, rescue: boolean): Promise<StagedTree> {
  const vm = vmOf(context);
  const name = `round-${round}${rescue ? '-rescued' : ''}`;
  if (rescue && vm.isolation === 'vm') {
    const message = `the disk of VM ${vm.id} is read in VM ${rescueVmId(vm.id)}, once the first is gone`;
    context.events.add({ kind: 'notice', level: 'warning', code: 'vm_rescue', message });
  }
  try {
    return await collectTree(context, vm, name, round, rescue);
  } catch (error) {
    if (rescue || codeOf(error) !== 'tree_incomplete') throw error;
    const command = { id: `open-${round}`, argv: ['/bin/chmod', '-R', 'u+rwX', '--', '.'], cwd: vm.guestPaths.workspace, env: null };
    const ignored = { timeoutMs: OPEN_TIMEOUT_MS, outputLimitBytes: OPEN_OUTPUT_BYTES, onOutput: () => undefined };
    await runCommand(vm, { ...command, ...ignored }, new AbortController().signal);
    return await collectTree(context, vm, `${name}-opened`, round, false);
  }
}

/** Runs the check in the VM that is up; whether it passed is the gate's to say. */
export async function check(context: AttemptContext, round: number, signal: AbortSignal): Promise<AttemptAnswer> {
  const { spec, state } = context;
  if (spec.check === null || state.tree === null) return { type: 'failed', detail: 'there is nothing to check' };
  const vm = vmOf(context);
  const started = context.clock();
  await context.gate.open('check');
  context.log.heading(`check after round ${round}: ${oneLine(spec.check.command)}`);
  const tail = new OutputTail(CHECK_FEEDBACK_BYTES);
  const end = await runCommand(vm, shellCommand(context, vm, 'check', spec.check.command, spec.check.timeoutMs, tail), signal);
  await context.gate.close();
  state.exhausted = noteShortages(context, 'the check', end) ?? state.exhausted;
  const status = end.kind === 'exited' && end.exitCode === 0 ? ('passed' as const) : ('failed' as const);
  state.checkTimedOut = end.kind === 'timed_out';
  if (status === 'passed') state.checkedSnapshot = state.tree.captured.snapshotId;
  roundRecord(state, round).check = { status, exitCode: end.exitCode, outputTail: tail.text() };
  context.events.add({
    kind: 'check.ended',
    round,
    status,
    exitCode: end.exitCode,
    signal: end.signal,
    timedOut: end.kind === 'timed_out',
    durationMs: context.clock() - started,
    outputTail: tail.text(),
  });
  return DONE;
}

/** Decides what follows the round. */
export function decideGate(context: AttemptContext, round: number): AttemptAnswer {
  const { spec, state } = context;
  const record = roundRecord(state, round);
  const decision = decideRound({
    gate: gateOf(context),
    round,
    maxRounds: spec.gate.maxRounds,
    changed: record.changed === false && state.change === 'ignored_only' ? 'ignored_only' : (record.changed ?? 'unknown'),
    check: checkResultOf(state, record),
    ...(round === 1 ? {} : { previousCheck: { exitCode: roundRecord(state, round - 1).check?.exitCode ?? null } }),
    ...(record.agent === null ? {} : { agent: record.agent }),
  });
  const shortage = state.exhausted === null ? '' : `\nOf the VM: ${state.exhausted.message}.\n`;
  const feedback = 'feedback' in decision ? `${decision.feedback}${shortage}` : '';
  const detail = decision.verdict === 'unrunnable' ? decision.detail : decision.reason;
  record.gate = { verdict: decision.verdict, reason: decision.reason };
  state.feedback = decision.verdict === 'next_round' ? feedback : null;
  context.events.add({ kind: 'gate', round, verdict: decision.verdict, reason: decision.reason, feedback });
  return { type: 'gate', verdict: decision.verdict, detail: decision.verdict === 'satisfied' ? '' : detail };
}

function checkResultOf(state: AttemptState, record: RoundRecord): CheckResult {
  if (record.check === null) return { status: 'not_run' };
  const { status, exitCode, outputTail } = record.check;
  return { status, exitCode, timedOut: state.checkTimedOut, outputTail };
}

/** Ends a VM and everything it is. What could not be removed is told, and the cleaner of the node looks after it. */
export async function destroy(context: AttemptContext): Promise<AttemptAnswer> {
  const { state } = context;
  context.model.close();
  await context.gate.close();
  const report = await state.vm?.destroy();
  state.vm = null;
  await state.layer?.close();
  state.layer = null;
  if (report !== undefined && report.left.length > 0) {
    context.events.add({
      kind: 'notice',
      level: 'warning',
      code: 'vm_leftovers',
      message: `left behind: ${report.left.slice(0, 20).join(', ')}`,
    });
  }
  return DONE;
}

function gateOf({ spec }: AttemptContext): Gate | undefined {
  if (!spec.gate.requireChange && spec.check === null) return undefined;
  return { requireChange: spec.gate.requireChange, ...(spec.check === null ? {} : { check: spec.check.command }) };
}

function vmOf(context: AttemptContext): Vm {
  const { vm } = context.state;
  if (vm === null)
    throw new CodedError('vm_missing', `attempt ${context.spec.turnId}.${context.spec.attempt} has no VM`, { id: context.spec.turnId });
  return vm;
}
