import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { uptime } from 'node:os';
import { join } from 'node:path';
import { CodedError, identifyProcess, messageOf } from '@firecrew/base';
import { type ControlReply, type ControlRequest, GENERATION, type TurnSpec } from '@firecrew/protocol';
import { callerPathBinds, type Driver, ownUsers, ProcessDriver, VmUsers } from '@firecrew/vmm';
import { readSpec, type TurnPaths, turnPaths, writeWhole } from '../turn-folder/turn-folder.ts';
import { firecrackerDriverOf } from '../vm/firecracker-settings.ts';
import { layerStoreOf } from '../vm/layer-settings.ts';
import { qemuDriverOf } from '../vm/qemu-settings.ts';
import type { AttemptContext, LayerPlace } from './attempt-context.ts';
import { callOff } from './call-off.ts';
import { serveControl } from './control-server.ts';
import { takeChain } from './egress-chain.ts';
import { EgressGate } from './egress-gate.ts';
import { EventSpool } from './event-spool.ts';
import { Lease } from './lease.ts';
import { LogSpool } from './log-spool.ts';
import { BUDGET_DETAIL, ModelGate } from './model-gate.ts';
import { AttemptRun } from './run-attempt.ts';
import { LAUNCH_FILE, type ShimLaunch, shimLaunchSchema } from './shim-arguments.ts';
import { takeEgress } from './take-egress.ts';

/** Period of the look at lease, deadline and spool. */
const WATCH_EVERY_MS = 200;

/** Time that an agent has to read that its budget is reached, and to write it down. */
const BUDGET_GRACE_MS = 1_000;

const clock = () => uptime() * 1000;

/** One process per attempt: drives it in its turn folder and never speaks to the server. */
async function main(root: string): Promise<void> {
  const paths = turnPaths(root);
  const own = identifyProcess(process.pid);
  if (own === undefined) throw new CodedError('shim_unidentified', 'this process cannot be identified', { id: root });
  // Made once: a second shim for the same folder ends here.
  await writeFile(paths.identity, `${JSON.stringify({ generation: GENERATION, ...own })}\n`, { flag: 'wx', mode: 0o600 });
  const spec = await readSpec(paths);
  const launch = shimLaunchSchema.parse(JSON.parse(readFileSync(join(root, LAUNCH_FILE), 'utf8')));
  const context = await makeContext(paths, spec, launch);
  const run = new AttemptRun(context, new Date().toISOString());
  const control = await serveControl(paths.control, (request) => answer(context, run, request));
  const watch = setInterval(() => watchBounds(context, run), WATCH_EVERY_MS);
  // Stopped by its keeper: what the VM holds is collected all the same.
  process.on('SIGTERM', () => callOff(context, run));
  process.on('SIGINT', () => callOff(context, run));
  const probe = await context.driver.probe();
  context.state.isolation = probe.isolation;
  context.model.onBudgetReached(() => setTimeout(() => run.interrupt({ type: 'budget_exceeded', detail: BUDGET_DETAIL }), BUDGET_GRACE_MS));
  // Before the event: who reads it sends the handle of the model route.
  context.model.decide(probe.isolation);
  context.events.add({ kind: 'attempt.started', isolation: probe.isolation, detail: probe.detail });
  const result = await run.run();
  clearInterval(watch);
  await writeWhole(paths.outcome, `${JSON.stringify(result)}\n`);
  control.close();
  context.events.close();
  context.log.close();
}

async function makeContext(paths: TurnPaths, spec: TurnSpec, launch: ShimLaunch): Promise<AttemptContext> {
  const events = new EventSpool(paths.events);
  const lease = new Lease(clock, spec.lease.selfStopAtMs, launch.renewedAtUptimeMs);
  const gate = new EgressGate({
    spec,
    leaseValid: () => lease.isValid(),
    audit: (line) => events.add({ kind: 'egress', line }),
    serverAddresses: launch.serverAddresses,
    note: (text) => void process.stderr.write(`${text}\n`),
    chain: takeChain(launch.egressProxy, process.env),
  });
  return {
    spec,
    paths,
    events,
    lease,
    gate,
    model: new ModelGate({
      launch: launch.model,
      backend: spec.backend,
      leaseValid: () => lease.isValid(),
      event: (body) => events.add(body),
    }),
    clock,
    driver: launch.users === null ? driverOf(spec, launch) : ownUsers(driverOf(spec, launch), new VmUsers(launch.users)),
    guestAgent: launch.guestAgent,
    contract: launch.contract,
    caller: await callerPathBinds(launch.callerPath, launch.homes),
    caBundle: launch.caBundle,
    layers: layersOf(spec, launch),
    log: new LogSpool(paths.log, spec.limits.logBytes),
    deadlineMs: clock() + spec.limits.turnTimeoutMs,
    state: {
      vm: null,
      layer: null,
      noLayer: new Set(),
      isolation: 'none',
      base: [],
      tree: null,
      checkpoint: false,
      change: 'none',
      checkedSnapshot: null,
      checkTimedOut: false,
      feedback: null,
      checkInputsChanged: [],
      restoredPaths: [],
      exhausted: null,
      bootFault: null,
      vmEnd: null,
      rounds: [],
    },
  };
}

/** The driver that the turn was placed with; the node agent probed it, so a shim of it only boots. */
function driverOf(spec: TurnSpec, launch: ShimLaunch): Driver {
  if (spec.driver === 'process') {
    const { bubblewrap, users } = launch;
    return new ProcessDriver({ bubblewrap, ...(users === null ? {} : { owner: { uid: users.firstUid, gid: users.firstUid } }) });
  }
  if (spec.driver === 'qemu' && launch.qemu !== null) return qemuDriverOf(launch.qemu, false);
  if (spec.driver === 'firecracker' && launch.firecracker !== null) return firecrackerDriverOf(launch.firecracker);
  throw new CodedError('driver_missing', `turn ${spec.turnId} wants the driver ${spec.driver}, which this node does not have`, {
    id: spec.turnId,
    action: 'Build what VMs are made of with `firecrew image`, or run it with another driver.',
  });
}

/** The layers of this node for VMs of the turn's driver, or why there are none. */
function layersOf(spec: TurnSpec, launch: ShimLaunch): LayerPlace | string {
  if (spec.driver === 'process') return 'the driver process has no disks that could be kept';
  const artifacts = launch[spec.driver]?.artifacts;
  if (launch.layers === null || artifacts === undefined) return 'this node keeps no layers';
  return { store: layerStoreOf(launch.layers), artifacts };
}

/** Lease first of all: after a thaw it is the first thing that is looked at. */
function watchBounds(context: AttemptContext, run: AttemptRun): void {
  if (!context.lease.isValid()) {
    void context.gate.close();
    context.model.close();
    run.interrupt({ type: 'lease_lost' });
  } else if (context.clock() > context.deadlineMs) run.interrupt({ type: 'deadline' });
  else if (context.gate.isFull || context.model.isFull) run.interrupt({ type: 'spool_full' });
}

async function answer(context: AttemptContext, run: AttemptRun, request: ControlRequest): Promise<ControlReply> {
  const { spec, lease, state, gate } = context;
  if (request.t === 'status' && request.modelHandle !== undefined) context.model.setHandle(request.modelHandle);
  if (request.t === 'cancel') callOff(context, run);
  if (request.t === 'renew') {
    lease.renew(request.sentAtUptimeMs);
    if (request.egress !== undefined) takeEgress(context, request.egress);
  }
  const sandboxPids = (await state.vm?.pids()) ?? [];
  return {
    ok: true,
    turnId: spec.turnId,
    attempt: spec.attempt,
    epoch: spec.epoch,
    step: run.step,
    leaseLeftMs: lease.leftMs(),
    sandboxPids: sandboxPids.slice(0, 10_000),
    ...(gate.revision === undefined ? {} : { egressRevision: gate.revision }),
  };
}

const root = process.argv[2];
if (root === undefined) {
  process.stderr.write('usage: shim TURN_FOLDER\n');
  process.exit(2);
}
try {
  await main(root);
  process.exit(0);
} catch (error) {
  const code = error instanceof CodedError ? `${error.code}: ` : '';
  process.stderr.write(`shim ${root}: ${code}${messageOf(error)}\n${error instanceof Error ? (error.stack ?? '') : ''}\n`);
  process.exit(1);
}
