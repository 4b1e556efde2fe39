import { findBackend } from '@firecrew/backend';
import { CodedError } from '@firecrew/base';
import type { MissionAggregate, Phase, Turn } from '@firecrew/mission';
import { DEFAULT_SIZINGS, resolveDemand } from '@firecrew/placement';
import { type CreateMission, type Driver, driverSchema, GENERATION, type ServerMessage, turnSpecSchema } from '@firecrew/protocol';
import { MAX_GATE_ROUNDS } from '@firecrew/stop-gate';
import { type MissionBase, tables } from '@firecrew/store';
import { eq } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { attemptRow } from '../delivery/build-record.ts';
import { turnEgress } from '../policy/turn-egress.ts';
import { demandOf } from './demand-of.ts';
import { blobSize, gateOf, missionRow, phaseInput, turnInput, workspaceIdOf } from './mission-facts.ts';

/** Share of the lease after which a shim that was not renewed stops itself. */
export const SELF_STOP_SHARE = 0.8;

type Start = Extract<ServerMessage, { t: 'turn.start' }>;

interface Place {
  readonly mission: MissionAggregate;
  readonly phase: Phase;
  readonly turn: Turn;
  readonly spec: CreateMission;
  readonly base: MissionBase;
  readonly workspaceId: string;
  /** The driver that placement chose. */
  readonly driver: Driver;
  /** What the attempt was given of the budget of its seat. */
  readonly grant: { readonly tokens: number | null; readonly micros: number | null } | null;
  /** Longest that a turn may run under its seat, in ms; null where that is not bounded. */
  readonly seatLeaseMs: number | null;
}

/** The order to start an attempt: its spec, the blobs it may fetch, and the token for its data calls. */
export async function buildStart(context: ServerContext, missionId: string, turnId: string): Promise<Start> {
  const place = await findPlace(context, missionId, turnId);
  const { mission, phase, turn, spec, base, workspaceId } = place;
  const attempt = turn.attempts.at(-1);
  if (attempt === undefined) throw new CodedError('attempt_unknown', `turn ${turnId} has no attempt`, { id: turnId });
  const input = await phaseInput(context, mission, base, phase);
  const tree = turnInput(mission, turn, input.tree);
  const blob = async (digest: string) => ({ digest, bytes: await blobSize(context, workspaceId, digest) });
  const workspace = { snapshotId: tree.snapshotId, blob: await blob(tree.blobDigest) };
  const phaseBase = { snapshotId: input.tree.snapshotId, blob: await blob(input.tree.blobDigest), commit: input.commit };
  const guestGit =
    input.commit === null
      ? null
      : await context.repositories.guestGit(missionId, workspaceIdOf(workspaceId), input.commit, base.branch, input.tree.blobDigest);
  const git = guestGit === null ? null : await blob(guestGit);
  const files = await Promise.all(spec.agent.files.map(async (file) => ({ name: file.name, blob: await blob(file.digest) })));
  const turnSpec = turnSpecSchema.parse({
    ...identity(place, attempt),
    ...work(context, place),
    agent: { command: spec.agent.command, files, env: {} },
    workspace,
    base: phaseBase,
    git,
    ignore: await context.repositories.ignoreFiles(missionId, input.commit),
  });
  const inputs = [workspace.blob, phaseBase.blob, ...(git === null ? [] : [git]), ...files.map((file) => file.blob)];
  const unique = [...new Map(inputs.map((item) => [item.digest, item])).values()];
  const grant = {
    nodeId: attempt.nodeId,
    turnId,
    attempt: attempt.attempt,
    epoch: attempt.epoch,
    workspaceId,
    digests: unique.map((item) => item.digest),
  };
  return {
    t: 'turn.start',
    spec: turnSpec,
    token: context.tokens.sign(grant),
    inputs: unique,
    ownAddresses: await context.ownAddresses.now(),
  };
}

async function findPlace(context: ServerContext, missionId: string, turnId: string): Promise<Place> {
  const mission = await context.store.load(missionId);
  const turn = mission?.turns.find((item) => item.id === turnId);
  const phase = mission?.phases.find((item) => item.id === turn?.phaseId);
  if (mission === undefined || turn === undefined || phase === undefined)
    throw new CodedError('attempt_unknown', `turn ${turnId} is not of mission ${missionId}`, { id: turnId });
  const row = await missionRow(context, missionId);
  if (row.base === null) throw new CodedError('base_missing', `mission ${missionId} has no base`, { id: missionId });
  const { demand, seatGrant } = await attemptRow(context, turnId, turn.attempt);
  const driver = driverSchema.parse(demand?.driver);
  const seatLeaseMs = row.seatId === null ? null : await leaseOf(context, row.seatId);
  const workspaceId = workspaceIdOf(row.workspaceId);
  return { mission, phase, turn, spec: row.spec, base: row.base, workspaceId, driver, grant: seatGrant, seatLeaseMs };
}

async function leaseOf({ db }: ServerContext, seatId: string): Promise<number | null> {
  const [seat] = await db.select({ leaseMs: tables.seats.leaseMs }).from(tables.seats).where(eq(tables.seats.id, seatId));
  return seat?.leaseMs ?? null;
}

function identity({ mission, phase, turn, spec, driver }: Place, attempt: { attempt: number; epoch: number; nodeId: string }) {
  return {
    generation: GENERATION,
    missionId: mission.id,
    phaseId: phase.id,
    runId: turn.runId,
    turnId: turn.id,
    nodeId: attempt.nodeId,
    attempt: attempt.attempt,
    epoch: attempt.epoch,
    iteration: phase.iteration,
    step: turn.step,
    kind: phase.kind,
    backend: spec.agent.backend,
    driver,
    allowUnisolated: spec.allowUnisolated,
  };
}

function work(context: ServerContext, { phase, spec, driver, workspaceId, grant, seatLeaseMs }: Place) {
  const { config } = context;
  const request = spec.phases[phase.position];
  if (request === undefined) throw new CodedError('base_missing', `phase ${phase.id} has no request`, { id: phase.id });
  const gate = gateOf(request);
  const backend = findBackend(spec.agent.backend, context.policy.backends);
  const { memoryMib = 1, diskMib = 1, vcpus = 1 } = resolveDemand(demandOf(backend), DEFAULT_SIZINGS[driver]);
  const ttlMs = config.lease.ttlMs;
  const { revision: _, setupAllow, ...egress } = turnEgress(context.policy, spec);
  return {
    task: request.task,
    setup:
      request.setup === undefined
        ? null
        : {
            command: request.setup,
            allow: setupAllow,
            timeoutMs: spec.setupTimeoutMs ?? config.limits.setupTimeoutMs,
            ...layerOf(spec, workspaceId),
          },
    check: gate?.check === undefined ? null : { command: gate.check, timeoutMs: spec.checkTimeoutMs ?? config.limits.checkTimeoutMs },
    gate: {
      mode: spec.gate.mode,
      requireChange: gate?.requireChange ?? false,
      maxRounds: MAX_GATE_ROUNDS,
      protect: [...spec.gate.protect],
    },
    egress,
    ...learningOf(spec),
    demand: { memoryMib, diskMib, vcpus },
    limits: {
      turnTimeoutMs: Math.min(spec.turnTimeoutMs ?? config.limits.turnTimeoutMs, seatLeaseMs ?? Number.POSITIVE_INFINITY),
      checkpointEveryMs: config.limits.checkpointEveryMs,
      logBytes: config.limits.logBytes,
    },
    // Said where there is one alone: a node of before budgets refuses the turn, since it could not keep it.
    ...(grant === null ? {} : { modelBudget: grant }),
    lease: { ttlMs, selfStopAtMs: Math.floor(ttlMs * SELF_STOP_SHARE) },
  };
}

/** Said of a learning run alone: a node that does not know it must not start its turns. */
function learningOf({ learn }: CreateMission) {
  return learn === undefined ? {} : { learning: { modelRoute: learn.withCredentials ? 'open' : 'closed' } };
}

/**
 * Said where a layer is wanted alone: a node of before layers knows no such key. A learning run has none: what it made with a wider reach must
 * not come to other missions, and one that is used shows nothing of what its set-up reaches.
 */
function layerOf({ setupLayerFiles = [], learn }: CreateMission, workspaceId: string) {
  return setupLayerFiles.length === 0 || learn !== undefined ? {} : { layer: { files: [...new Set(setupLayerFiles)], workspaceId } };
}
