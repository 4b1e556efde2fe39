import { parseNameStatus } from '@firecrew/artifact-capture';
import { CodedError, messageOf } from '@firecrew/base';
import { findProtectedPaths, nameBranch } from '@firecrew/delivery';
import type { MissionAction, Phase } from '@firecrew/mission';
import type { AttemptResult, Delivery } from '@firecrew/protocol';
import { type MissionRow, tables } from '@firecrew/store';
import type { CommitDiff } from '@firecrew/workspace';
import type { ServerContext } from '../context.ts';
import { type InputTree, missionRow, phaseInput, samePhase, workspaceIdOf } from '../driver/mission-facts.ts';
import { type NewArtifact, RECORD_NAME, storeArtifacts } from './artifacts.ts';
import { attemptRow, buildRecord } from './build-record.ts';
import { checkState, importResult } from './import-result.ts';
import { pushDelivery } from './push-delivery.ts';
import { type StoredDocuments, storeDocuments } from './store-documents.ts';

/** Failed deliveries in a row after which the phase is told that its result could not be made into a commit. */
export const MAX_DELIVERY_TRIES = 5;

/** Paths that a delivery names as left out of its commit. */
export const MAX_LEFT_OUT = 1000;
/** Paths that a delivery names as committed without the filter that the base asks for. */
export const MAX_UNFILTERED = 1000;

type Deliver = Extract<MissionAction, { type: 'deliver' }>;

/** Deliveries under way in this process, and how often each has failed. */
export class DeliveryDesk {
  readonly #running = new Map<string, Promise<void>>();
  readonly #failures = new Map<string, number>();

  /** Starts the delivery of a phase unless it is under way here. Repeating one is harmless: commits are deterministic and the remote is compared first. */
  start(context: ServerContext, missionId: string, action: Deliver): void {
    const key = `${action.phaseId}.${action.turnId}.${action.attempt}`;
    if (this.#running.has(key)) return;
    const work = deliver(context, missionId, action)
      .then(() => void this.#failures.delete(key))
      .catch((error: unknown) => this.#onFailure(context, missionId, action, key, error))
      .finally(() => this.#running.delete(key));
    this.#running.set(key, work);
  }

  async idle(): Promise<void> {
    await Promise.allSettled([...this.#running.values()]);
  }

  async #onFailure(context: ServerContext, missionId: string, action: Deliver, key: string, error: unknown): Promise<void> {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    context.log.error({ err: error, mission: missionId, phase: action.phaseId, failures }, 'delivery failed');
    const final = failures >= MAX_DELIVERY_TRIES || error instanceof CodedError;
    if (!final) return;
    this.#failures.delete(key);
    const detail = `the result could not be delivered: ${messageOf(error).slice(0, 1000)}`;
    await context.store
      .apply(missionId, { type: 'delivery_recorded', phaseId: action.phaseId, ok: false, detail })
      .catch((cause: unknown) => {
        context.log.error({ err: cause, mission: missionId }, 'a failed delivery could not be recorded');
      });
  }
}

interface Made {
  readonly branch: string;
  readonly commit: string | null;
  readonly baseCommit: string | null;
  readonly diff: CommitDiff | null;
  readonly protectedPaths: readonly string[];
  readonly leftOut: Delivery['leftOut'];
  readonly unfiltered: Delivery['unfiltered'];
}

async function deliver(context: ServerContext, missionId: string, action: Deliver): Promise<void> {
  const row = await missionRow(context, missionId);
  const mission = await context.store.load(missionId);
  const phase = mission?.phases.find((item) => item.id === action.phaseId);
  if (mission === undefined || phase === undefined || row.base === null)
    throw new CodedError('base_missing', `mission ${missionId} has no base`, { id: missionId });
  const input = await phaseInput(context, mission, row.base, phase);
  const made = await makeCommit(context, row, action, phase, input);
  const attempt = await attemptRow(context, action.turnId, action.attempt);
  const approved = await approvedBy(context, missionId, phase);
  const pushed = await pushDelivery(context, row, made, { approved });
  const documents = await documentsOf(context, row, action, input, attempt.tree);
  const described = describe(phase, action, made, pushed, attempt.result);
  const delivery = documents === undefined ? described : { ...described, leftOut: documents.leftOut.slice(0, MAX_LEFT_OUT) };
  const record = await buildRecord(context, row, phase, action, delivery);
  const artifacts: NewArtifact[] = [
    ...diffArtifacts(made.diff),
    {
      name: RECORD_NAME,
      kind: 'record',
      mime: 'application/json',
      bytes: Buffer.from(`${JSON.stringify(record, null, 2)}\n`),
      truncated: false,
    },
  ];
  const place = { missionId, phaseId: phase.id, turnId: action.turnId, attempt: action.attempt };
  const stored = [...(await storeArtifacts(context, workspaceIdOf(row.workspaceId), place, artifacts)), ...(documents?.rows ?? [])];
  const missing = documents?.isEmpty === true && row.spec.phases[phase.position]?.allowEmpty !== true;
  const detail = missing ? 'the phase left no file; allow that with allowEmpty' : '';
  await context.store.apply(missionId, { type: 'delivery_recorded', phaseId: phase.id, ok: !missing, detail }, async (tx) => {
    await tx.update(tables.phases).set({ delivery }).where(samePhase(missionId, phase.id));
    for (const artifact of stored) await tx.insert(tables.artifacts).values(artifact).onConflictDoNothing();
    await context.store.tellIn(tx, missionId, [{ kind: 'delivery', delivery }]);
  });
}

/** The outputs of a phase without a repository; undefined for one that has its commit. */
async function documentsOf(
  context: ServerContext,
  row: MissionRow,
  action: Deliver,
  input: Awaited<ReturnType<typeof phaseInput>>,
  after: InputTree | null,
): Promise<StoredDocuments | undefined> {
  if (row.spec.repository.kind !== 'none') return undefined;
  if (after === null)
    throw new CodedError('tree_missing', `attempt ${action.turnId}.${action.attempt} left no tree`, { id: action.turnId });
  const place = { missionId: row.id, phaseId: action.phaseId, turnId: action.turnId, attempt: action.attempt };
  return await storeDocuments(context, row, place, { before: input.tree, after });
}

async function makeCommit(
  context: ServerContext,
  row: MissionRow,
  action: Deliver,
  phase: Phase,
  input: Awaited<ReturnType<typeof phaseInput>>,
): Promise<Made> {
  const branch = nameBranch({ title: row.title, missionId: row.id, verified: action.verified });
  const nothing: Made = { branch, commit: null, baseCommit: input.commit, diff: null, protectedPaths: [], leftOut: [], unfiltered: [] };
  if (input.commit === null) return nothing;
  const repository = await context.repositories.open(row.id);
  const place = { row, phaseId: phase.id, turnId: action.turnId, attempt: action.attempt, verified: action.verified, input };
  const imported = await context.repositories.withScratch((scratch) => importResult(context, repository, scratch, place));
  if (imported === undefined) return nothing;
  const diff = await repository.diff(input.commit, imported.commit);
  const protectedPaths = findProtectedPaths(changedPaths(diff));
  return {
    ...nothing,
    commit: imported.commit,
    diff,
    protectedPaths: protectedPaths.map((item) => Buffer.from(item.path).toString('utf8')),
    leftOut: imported.notImported.map(({ path, reason }) => ({ path: Buffer.from(path).toString('utf8'), reason })),
    unfiltered: imported.unfiltered.map(({ path, filter }) => ({ path: Buffer.from(path).toString('utf8'), filter })),
  };
}

function describe(
  phase: Phase,
  action: Deliver,
  made: Made,
  pushed: { state: Delivery['pushed']; detail: string; branch: string },
  result: AttemptResult | null,
): Delivery {
  const stat = made.diff?.stat;
  return {
    phaseId: phase.id,
    attempt: action.attempt,
    state: made.commit === null ? 'nothing_to_deliver' : pushed.state === 'awaiting_approval' ? 'awaiting_approval' : 'delivered',
    branch: made.commit === null ? null : pushed.branch,
    commit: made.commit,
    baseCommit: made.baseCommit,
    // A phase without a check is delivered under its own name all the same, and nothing verified it.
    verified: checkState(action.verified, result?.verification) !== 'unverified',
    pushed: pushed.state,
    pushDetail: pushed.detail,
    diffstat: stat === undefined ? null : { files: stat.files, insertions: stat.insertions, deletions: stat.deletions },
    diffError: diffErrorOf(made.diff),
    protectedPaths: [...made.protectedPaths],
    leftOut: made.leftOut.slice(0, MAX_LEFT_OUT),
    unfiltered: made.unfiltered.slice(0, MAX_UNFILTERED),
    checkInputsChanged: [...(result?.checkInputsChanged ?? [])],
  };
}

/** Every path of a diff, old names of renames too. A listing that could not be read protects everything: nothing is pushed. */
function changedPaths(diff: CommitDiff): Uint8Array[] {
  if (diff.rawNameStatus === undefined)
    throw new CodedError('diff_unreadable', 'the changed paths could not be listed, so nothing is pushed');
  return parseNameStatus(diff.rawNameStatus).flatMap((entry) => [entry.path, ...(entry.from === undefined ? [] : [entry.from])]);
}

function diffErrorOf(diff: CommitDiff | null): string | null {
  const errors = diff?.errors ?? [];
  return errors.length === 0
    ? null
    : errors
        .map((error) => JSON.stringify(error))
        .join('; ')
        .slice(0, 1000);
}

function diffArtifacts(diff: CommitDiff | null): NewArtifact[] {
  if (diff === null) return [];
  const artifacts: NewArtifact[] = [];
  if (diff.patch !== undefined)
    artifacts.push({
      name: 'changes.patch',
      kind: 'patch',
      mime: 'text/x-diff',
      bytes: Buffer.from(diff.patch),
      truncated: diff.truncated,
    });
  if (diff.rawNameStatus !== undefined)
    artifacts.push({ name: 'names.txt', kind: 'names', mime: 'text/plain', bytes: Buffer.from(diff.rawNameStatus), truncated: false });
  if (diff.rawNumstat !== undefined)
    artifacts.push({ name: 'diffstat.txt', kind: 'diffstat', mime: 'text/plain', bytes: Buffer.from(diff.rawNumstat), truncated: false });
  return artifacts;
}

async function approvedBy(context: ServerContext, missionId: string, phase: Phase): Promise<boolean> {
  const [row] = await context.db.select({ by: tables.phases.approvedBy }).from(tables.phases).where(samePhase(missionId, phase.id));
  return row?.by != null;
}
