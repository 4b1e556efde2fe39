import { parseNameStatus } from '@firecrew/artifact-capture';
import { CodedError, messageOf } from '@firecrew/base';
import { findProtectedPaths, mayPass, nameBranch } from '@firecrew/delivery';
import type { MissionAction, Phase } from '@firecrew/mission';
import type { AttemptResult, CreateMission, Delivery, RunRecord } from '@firecrew/protocol';
import { judgeDelivery } from '@firecrew/stop-gate';
import { inTransaction, type MissionRow, tables } from '@firecrew/store';
import type { CommitDiff } from '@firecrew/workspace';
import { and, eq } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import { gateOf, type InputTree, missionRow, phaseInput, samePhase, workspaceIdOf } from '../driver/mission-facts.ts';
import { type ArtifactPlace, type ArtifactRow, type NewArtifact, RECORD_NAME, storeArtifacts } from './artifacts.ts';
import { attemptRow, buildRecord } from './build-record.ts';
import { checkState, importResult } from './import-result.ts';
import { type Pushed, pushDelivery } from './push-delivery.ts';
import { type StoredDocuments, storeDocuments } from './store-documents.ts';

/** Failed deliveries in a row after which the phase is told that its result could not be made into a commit. */
export const MAX_DELIVERY_TRIES = 5;

/** Paths that a delivery names as left out of its commit. */
export const MAX_LEFT_OUT = 1000;
/** Paths that a delivery names as committed without the filter that the base asks for. */
export const MAX_UNFILTERED = 1000;

type PhaseRequest = CreateMission['phases'][number];
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
    const final = failures >= MAX_DELIVERY_TRIES || (error instanceof CodedError && !mayPass(error.code));
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

/** A commit before anything else is known of it. */
interface Committed {
  readonly branch: string;
  readonly commit: string | null;
  readonly baseCommit: string | null;
  readonly leftOut: Delivery['leftOut'];
  readonly unfiltered: Delivery['unfiltered'];
}

/** What lies between a commit and its base. */
interface Changes {
  readonly diff: CommitDiff | null;
  readonly protectedPaths: readonly string[];
  /** Why the changed paths are not known; such a commit is pushed only after an approval. */
  readonly unlisted: string | null;
}

const NO_CHANGES: Changes = { diff: null, protectedPaths: [], unlisted: null };
const UNDER_WAY: Pushed = {
  state: 'awaiting_approval',
  detail: 'the delivery did not come to its end: nothing but the commit is known to be stored',
  branch: '',
};

async function deliver(context: ServerContext, missionId: string, action: Deliver): Promise<void> {
  const row = await missionRow(context, missionId);
  const mission = await context.store.load(missionId);
  const phase = mission?.phases.find((item) => item.id === action.phaseId);
  const request = phase === undefined ? undefined : row.spec.phases[phase.position];
  if (mission === undefined || phase === undefined || request === undefined || row.base === null)
    throw new CodedError('base_missing', `mission ${missionId} has no base`, { id: missionId });
  const input = await phaseInput(context, mission, row.base, phase);
  const attempt = await attemptRow(context, action.turnId, action.attempt);
  const made = await makeCommit(context, row, action, phase, input);
  const place = { missionId, phaseId: phase.id, turnId: action.turnId, attempt: action.attempt };
  // The commit is known before anything that may fail: whatever follows, it can be fetched. Until its changes are listed nothing may push it.
  await keep(context, place, describe(phase, action, made, NO_CHANGES, { ...UNDER_WAY, branch: made.branch }, attempt.result), []);
  const changes = await listChanges(context, row, made);
  const workspaceId = workspaceIdOf(row.workspaceId);
  const outputs = await storeArtifacts(context, workspaceId, place, diffArtifacts(changes.diff));
  const pushed = await pushDelivery(context, row, { ...made, ...changes }, { approved: await approvedBy(context, missionId, phase) });
  const described = describe(phase, action, made, changes, pushed, attempt.result);
  await keep(context, place, described, outputs);
  const documents = await documentsOf(context, row, action, input, attempt.tree);
  const delivery = documents === undefined ? described : { ...described, leftOut: documents.leftOut.slice(0, MAX_LEFT_OUT) };
  const record = await buildRecord(context, row, phase, action, delivery);
  const stored = [...(await storeArtifacts(context, workspaceId, place, [recordArtifact(record)])), ...(documents?.rows ?? [])];
  const detail = documents === undefined ? refusalOf(phase, request, made) : refusalOfDocuments(request, documents);
  const ok = detail === '';
  await context.store.apply(missionId, { type: 'delivery_recorded', phaseId: phase.id, ok, detail }, async (tx) => {
    await tx.update(tables.phases).set({ delivery }).where(samePhase(missionId, phase.id));
    for (const artifact of [...outputs, ...stored]) await tx.insert(tables.artifacts).values(artifact).onConflictDoNothing();
    await context.store.tellIn(tx, missionId, [{ kind: 'delivery', delivery }]);
  });
}

/** Stores a delivery that has a commit, as far as it has come; the end of the delivery is told by itself. */
async function keep(context: ServerContext, place: ArtifactPlace, delivery: Delivery, outputs: readonly ArtifactRow[]): Promise<void> {
  if (delivery.commit === null) return;
  const { missionId, phaseId, turnId, attempt } = place;
  await inTransaction(context.db, async (tx) => {
    // Locked first, as by every step of a mission: two that lock in another order wait for one another.
    await tx.select({ id: tables.missions.id }).from(tables.missions).where(eq(tables.missions.id, missionId)).for('update');
    const wanted = and(
      eq(tables.phases.deliveryState, 'wanted'),
      eq(tables.phases.resultTurn, turnId),
      eq(tables.phases.resultAttempt, attempt),
    );
    const kept = await tx
      .update(tables.phases)
      .set({ delivery })
      .where(and(samePhase(missionId, phaseId), wanted))
      .returning({ id: tables.phases.id });
    if (kept.length === 0) return;
    for (const output of outputs) await tx.insert(tables.artifacts).values(output).onConflictDoNothing();
  });
}

/** Why a phase whose turns succeeded is not green for want of a commit; empty where it is. */
function refusalOf(phase: Phase, request: PhaseRequest, made: Committed): string {
  if (phase.outcome?.kind !== 'completed') return '';
  const leftOut = made.leftOut.map(({ reason }) => reason);
  const verdict = judgeDelivery(gateOf(request), { hasCommit: made.commit !== null, leftOut });
  return verdict.ok ? '' : verdict.detail;
}

function refusalOfDocuments(request: PhaseRequest, documents: StoredDocuments): string {
  return documents.isEmpty && !request.allowEmpty ? 'the phase left no file; allow that with allowEmpty' : '';
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
): Promise<Committed> {
  const branch = nameBranch({ title: row.title, missionId: row.id, verified: action.verified });
  const nothing: Committed = { branch, commit: null, baseCommit: input.commit, leftOut: [], unfiltered: [] };
  if (input.commit === null) return nothing;
  const repository = await context.repositories.open(row.id);
  const place = { row, phaseId: phase.id, turnId: action.turnId, attempt: action.attempt, verified: action.verified, input };
  const imported = await context.repositories.withScratch((scratch) => importResult(context, repository, scratch, place));
  if (imported === undefined) return nothing;
  return {
    ...nothing,
    commit: imported.unchanged ? null : imported.commit,
    leftOut: imported.notImported.map(({ path, reason }) => ({ path: Buffer.from(path).toString('utf8'), reason })),
    unfiltered: imported.unfiltered.map(({ path, filter }) => ({ path: Buffer.from(path).toString('utf8'), filter })),
  };
}

/** Reads what a commit changes. A listing that could not be read protects everything: nothing is pushed without an approval. */
async function listChanges(context: ServerContext, row: MissionRow, { commit, baseCommit }: Committed): Promise<Changes> {
  if (commit === null || baseCommit === null) return NO_CHANGES;
  const repository = await context.repositories.open(row.id);
  const diff = await repository.diff(baseCommit, commit);
  const failed = diff.errors.find((error) => error.what === 'name_status');
  if (diff.rawNameStatus === undefined || failed !== undefined)
    return { diff, protectedPaths: [], unlisted: `the changed paths could not be listed: ${failed?.why ?? 'no reason given'}` };
  const protectedPaths = findProtectedPaths(changedPaths(diff.rawNameStatus));
  return { diff, protectedPaths: protectedPaths.map((item) => Buffer.from(item.path).toString('utf8')), unlisted: null };
}

function describe(
  phase: Phase,
  action: Deliver,
  made: Committed,
  { diff, protectedPaths }: Changes,
  pushed: Pushed,
  result: AttemptResult | null,
): Delivery {
  const stat = diff?.stat;
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
    diffError: diffErrorOf(diff),
    protectedPaths: [...protectedPaths],
    leftOut: made.leftOut.slice(0, MAX_LEFT_OUT),
    unfiltered: made.unfiltered.slice(0, MAX_UNFILTERED),
    checkInputsChanged: [...(result?.checkInputsChanged ?? [])],
  };
}

/** Every path of a listing, old names of renames too. */
function changedPaths(listing: Uint8Array): Uint8Array[] {
  return parseNameStatus(listing).flatMap((entry) => [entry.path, ...(entry.from === undefined ? [] : [entry.from])]);
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

function recordArtifact(record: RunRecord): NewArtifact {
  const bytes = Buffer.from(`${JSON.stringify(record, null, 2)}\n`);
  return { name: RECORD_NAME, kind: 'record', mime: 'application/json', bytes, truncated: false };
}

async function approvedBy(context: ServerContext, missionId: string, phase: Phase): Promise<boolean> {
  const [row] = await context.db.select({ by: tables.phases.approvedBy }).from(tables.phases).where(samePhase(missionId, phase.id));
  return row?.by != null;
}
