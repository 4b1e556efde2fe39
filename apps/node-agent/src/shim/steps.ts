import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { contractVariables, findBackend } from '@firecrew/backend';
import { CodedError, codeOf } from '@firecrew/base';
import { commandHarness } from '@firecrew/harness';
import type { AttemptAnswer, Purpose } from '@firecrew/mission';
import type { RoundRecord } from '@firecrew/protocol';
import { CHECK_FEEDBACK_BYTES, type CheckResult, checkInputsChanged, checkIsDue, decideRound, type Gate } from '@firecrew/stop-gate';
import { guestHealth, type Vm } from '@firecrew/vmm';
import { readManifestOfBlob } from '@firecrew/workspace';
import { type AttemptContext, type AttemptState, attemptMarker, roundRecord, type StagedTree } from './attempt-context.ts';
import { changedPaths, collectTree, commitChange, shownPath } from './collect-tree.ts';
import { OutputTail } from './output-tail.ts';
import { restoreProtected } from './restore-protected.ts';
import { runCommand } from './run-command.ts';
import { inputFile, sendBlob, sendFiles } from './send-trees.ts';
import { takeCheckpoints } from './take-checkpoints.ts';

const DONE: AttemptAnswer = { type: 'done' };
/** Bytes of output of one command that the guest keeps. */
const OUTPUT_LIMIT_BYTES = 256 * 1024 * 1024;
/** Time and output for opening what an agent closed to itself. */
const OPEN_TIMEOUT_MS = 60_000;
const OPEN_OUTPUT_BYTES = 64 * 1024;
/** Least time a command is given, so that a deadline of now is still a deadline. */
const MIN_TIMEOUT_MS = 1;

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

/** Boots a fresh VM. What its guest opens towards the host goes to the egress gate. */
export async function boot(context: AttemptContext, purpose: Purpose, round: number): Promise<AttemptAnswer> {
  const { spec, paths, state } = context;
  const vmId = `${spec.turnId}.${spec.iteration}.${spec.step}.${spec.attempt}.${round}${purpose === 'agent' ? 'a' : 'v'}`;
  state.vm = await context.driver.boot({
    vmId,
    folder: join(paths.root, `v${round}${purpose === 'agent' ? 'a' : 'v'}`),
    guestAgent: context.guestAgent,
    bindPaths: context.caller.binds,
    path: context.caller.path,
    caBundle: context.caBundle,
    limits: { memoryMib: spec.demand.memoryMib, diskMib: spec.demand.diskMib },
    attemptMarker: attemptMarker(spec),
    allowUnisolated: spec.allowUnisolated,
    ...(context.owner === undefined ? {} : { owner: context.owner }),
    onStream: (stream, request) => {
      if (request.t !== 'tunnel') {
        stream.reply({ ok: false, code: 'no_route', message: 'this backend has no model route' });
        stream.end();
        return;
      }
      stream.reply({ ok: true });
      context.gate.handle(stream);
    },
    onRefused: (refusal) => context.events.add({ kind: 'link.refused', reason: refusal.reason }),
  });
  state.isolation = state.vm.isolation;
  const health = await guestHealth(await state.vm.session());
  if (!health.proxy.up)
    return {
      type: 'failed',
      detail: `the guest's proxy port is not up: ${health.proxy.error ?? 'no reason given'}`,
      outcome: { kind: 'refused', reason: 'egress_down' },
    };
  return DONE;
}

/** Puts the tree and its host-made `.git` into the VM. */
export async function inject(context: AttemptContext): Promise<AttemptAnswer> {
  const { spec, state } = context;
  const vm = vmOf(context);
  const tree = state.tree === null ? inputFile(context, spec.workspace.blob.digest) : state.tree.file;
  await sendBlob(vm, vm.guestPaths.workspace, tree);
  if (spec.git !== null) await sendBlob(vm, `${vm.guestPaths.workspace}/.git`, inputFile(context, spec.git.digest));
  return DONE;
}

/** Runs the set-up with its own egress policy. */
export async function setUp(context: AttemptContext, purpose: Purpose, round: number, signal: AbortSignal): Promise<AttemptAnswer> {
  const { spec } = context;
  if (spec.setup === null) return DONE;
  const vm = vmOf(context);
  const started = context.clock();
  await context.gate.open('setup');
  context.log.heading(`set-up${purpose === 'verify' ? ' for the check' : ''}: ${oneLine(spec.setup.command)}`);
  const tail = new OutputTail(CHECK_FEEDBACK_BYTES);
  const end = await runCommand(vm, shell(context, vm, `setup-${purpose}`, spec.setup.command, spec.setup.timeoutMs, tail), signal);
  await context.gate.close();
  const timedOut = end.kind === 'timed_out';
  context.events.add({
    kind: 'setup.ended',
    round,
    purpose,
    exitCode: end.exitCode,
    signal: end.signal,
    timedOut,
    durationMs: context.clock() - started,
  });
  if (end.kind === 'exited' && end.exitCode === 0) return DONE;
  const how = timedOut
    ? 'did not end within its time limit'
    : end.exitCode === null
      ? `was ended by ${end.signal ?? 'a signal'}`
      : `exited with status ${end.exitCode}`;
  return { type: 'failed', detail: `the set-up ${how}: ${tail.text().slice(-800)}`, outcome: { kind: 'setup_failed' } };
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
    contract: contractVariables(findBackend(spec.backend)),
    ...(state.feedback === null ? {} : { feedback: state.feedback }),
  });
  if (plan.verdict === 'refused') return { type: 'failed', detail: plan.message, outcome: { kind: 'refused', reason: 'environment' } };
  await sendFiles(vm, plan.folders, plan.files);
  await context.gate.open('agent');
  context.log.heading(`round ${round}: ${oneLine(spec.agent.command)}`);
  context.events.add({ kind: 'agent.started', round, logOffset: context.log.bytes });
  const started = context.clock();
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
      { ...command, ...bounds(context, Number.MAX_SAFE_INTEGER), onOutput: (bytes) => context.log.write(bytes) },
      signal,
    );
    const agent = { exitCode: end.exitCode, signal: end.signal, timedOut: end.kind === 'timed_out' };
    roundRecord(state, round).agent = agent;
    context.events.add({ kind: 'agent.ended', round, ...agent, durationMs: context.clock() - started, survivors: end.survivors });
    return DONE;
  } finally {
    await checkpoints.stop();
    await context.gate.close();
  }
}

/** Brings the tree back and compares it with the base, on the host. */
export async function collect(context: AttemptContext, round: number, rescue: boolean): Promise<AttemptAnswer> {
  const { spec, state } = context;
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
  const end = await runCommand(vm, shell(context, vm, 'check', spec.check.command, spec.check.timeoutMs, tail), signal);
  await context.gate.close();
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
    ...(record.agent === null ? {} : { agent: record.agent }),
  });
  const feedback = 'feedback' in decision ? decision.feedback : '';
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
  await context.gate.close();
  const report = await state.vm?.destroy();
  state.vm = null;
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

function shell(context: AttemptContext, vm: Vm, id: string, command: string, timeoutMs: number, tail: OutputTail) {
  return {
    id,
    argv: ['/bin/sh', '-c', command],
    cwd: vm.guestPaths.workspace,
    env: null,
    ...bounds(context, timeoutMs),
    onOutput: (bytes: Uint8Array) => {
      tail.add(bytes);
      context.log.write(bytes);
    },
  };
}

/** A command never outlives its attempt. */
function bounds(context: AttemptContext, timeoutMs: number) {
  const left = Math.floor(context.deadlineMs - context.clock());
  return {
    timeoutMs: Math.max(MIN_TIMEOUT_MS, Math.min(timeoutMs, left, context.spec.limits.turnTimeoutMs)),
    outputLimitBytes: OUTPUT_LIMIT_BYTES,
  };
}

function oneLine(text: string): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > 200 ? `${line.slice(0, 200)}...` : line;
}
