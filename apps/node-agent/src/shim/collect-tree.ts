import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  byteKey,
  type CommitChange,
  compareManifests,
  decideChange,
  EXCLUDABLE_NAMES,
  HARD_EXCLUDED_NAMES,
  type ManifestEntry,
  nameBytes,
  nameText,
  readableName,
} from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import type { CapturedTree } from '@firecrew/protocol';
import { getTree, INCOMPLETE_REASONS, ignoredPaths, type OutgoingTree, type TreeExclusion, type Vm } from '@firecrew/vmm';
import { type ArchiveTrailer, canonicaliseArchive } from '@firecrew/workspace';
import type { AttemptContext, StagedTree } from './attempt-context.ts';

/** Time to wait for a link when a tree is collected; then the disk is read without the guest. */
const SESSION_TIMEOUT_MS = 15_000;
/** Paths that an error names. */
const MAX_NAMED = 10;
/** Names of a report that are kept. */
const MAX_REPORTED = 1000;

/**
 * Reads the workspace out of a VM into a staged, canonical blob: through the guest agent, or from the VM's disk with `rescue`.
 * Throws `tree_incomplete` when something that belongs to the tree could not be read: it would look deleted.
 */
export async function collectTree(context: AttemptContext, vm: Vm, name: string, round: number, rescue: boolean): Promise<StagedTree> {
  const exclude = exclusionOf(context);
  const { workspace } = vm.guestPaths;
  const outgoing = rescue
    ? await vm.rescue(workspace, exclude)
    : await getTree(await vm.session(SESSION_TIMEOUT_MS), `get-${name}`, workspace, exclude);
  return await stageTree(context, outgoing, name, round);
}

async function stageTree(context: AttemptContext, outgoing: OutgoingTree, name: string, round: number): Promise<StagedTree> {
  await mkdir(context.paths.staged, { recursive: true, mode: 0o700 });
  const file = join(context.paths.staged, `${name}.tar.zst`);
  // Only the trailer proves that all of it came; whoever gives it compares it with what did.
  const trailerOnce = onceOnly((received: ArchiveTrailer) => outgoing.trailer(received));
  const snapshot = await canonicaliseArchive(outgoing.archive, file, { proof: trailerOnce });
  const trailer = await trailerOnce(snapshot.trailer);
  const missing = trailer.skipped.filter((item) => INCOMPLETE_REASONS.includes(item.reason));
  if (missing.length > 0) {
    await rm(file, { force: true });
    const names = missing.slice(0, MAX_NAMED).map((item) => `${item.path} (${item.reason})`);
    throw new CodedError('tree_incomplete', `${missing.length} paths of the workspace could not be collected: ${names.join(', ')}`, {
      id: context.spec.turnId,
      action: 'Leave files that their owner can read, of names and sizes within the limits.',
    });
  }
  const captured: CapturedTree = {
    snapshotId: snapshot.snapshotId,
    blobDigest: snapshot.blobDigest,
    bytes: (await stat(file)).size,
    files: snapshot.entries.length,
    round,
    excluded: trailer.excluded.slice(0, MAX_REPORTED),
    skipped: [
      ...trailer.skipped.map((item) => `${item.path} (${item.reason})`),
      ...snapshot.skipped.map((item) => readableName(item.path)),
    ].slice(0, MAX_REPORTED),
  };
  return { file, captured, entries: snapshot.entries };
}

function onceOnly<Question, Value>(ask: (question: Question) => Promise<Value>): (question: Question) => Promise<Value> {
  let asked: Promise<Value> | undefined;
  return (question) => {
    asked ??= ask(question);
    return asked;
  };
}

function exclusionOf(context: AttemptContext): TreeExclusion {
  const hard: readonly string[] = HARD_EXCLUDED_NAMES;
  return {
    hard: [...hard],
    listed: EXCLUDABLE_NAMES.filter((name) => !hard.includes(name)),
    trackedDirs: foldersOf(context.state.base),
    ignore: context.spec.ignore.map((file) => ({ ...file })),
  };
}

/** Every folder that holds a path of the base. */
function foldersOf(entries: readonly ManifestEntry[]): string[] {
  const folders = new Set<string>();
  for (const entry of entries) {
    const parts = byteKey(entry.path).split('/');
    const depth = entry.kind === 'directory' ? parts.length : parts.length - 1;
    for (let at = 1; at <= depth; at += 1) folders.add(parts.slice(0, at).join('/'));
  }
  return [...folders];
}

/** What of an attempt says what a collected tree is a change of. */
export interface ChangeBase {
  readonly spec: Pick<AttemptContext['spec'], 'base' | 'ignore'>;
  readonly state: Pick<AttemptContext['state'], 'base'>;
}

/** What of a tree delivery would commit. Without a repository nothing is left out: every difference is a change. */
export function commitChange({ spec, state }: ChangeBase, entries: readonly ManifestEntry[]): CommitChange {
  const difference = compareManifests(state.base, entries);
  if (spec.base.commit === null) return difference.isEmpty ? 'none' : 'changed';
  const isIgnored = ignoredPaths(spec.ignore);
  return decideChange(difference, (path) => isIgnored(byteKey(path), false));
}

/** Paths in which a tree differs from the base of the phase, as `nameText` writes them: for the rules of the gate, which are text. */
export function changedPaths(context: AttemptContext, entries: readonly ManifestEntry[]): string[] {
  const difference = compareManifests(context.state.base, entries);
  const pairs = [...difference.changed, ...difference.modeChanged, ...difference.typeChanged].map((item) => item.path);
  return [...difference.added.map((entry) => entry.path), ...difference.deleted.map((entry) => entry.path), ...pairs].map(nameText);
}

/** A path of {@link changedPaths} for people and records, which hold no byte that is not text. */
export function shownPath(path: string): string {
  return Buffer.from(nameBytes(path)).toString('utf8');
}
