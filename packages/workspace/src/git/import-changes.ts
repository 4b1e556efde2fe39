import { join } from 'node:path';
import { compareManifests, type ManifestEntry, readableName } from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import { type CommitPlan, isCommitId } from '@firecrew/delivery';
import { cleanContents, type UnfilteredPath } from './clean-contents.ts';
import { keyPath, pathKey, textOf } from './git-records.ts';
import { findIgnored } from './ignored-paths.ts';
import { listTree, type TreeListing } from './list-tree.ts';
import { expectedListing, modeOf, type NotImported, planTreeChange, type TreeChangePlan } from './plan-tree-change.ts';
import { GIT_LOCAL_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';
import { withScratchFolder } from './scratch-folder.ts';
import { type TreeContent, writeBlobs } from './write-blobs.ts';

/** A commit made from a collected tree. */
export interface ImportedCommit {
  /** The base itself when nothing differs. */
  readonly commit: string;
  readonly tree: string;
  readonly unchanged: boolean;
  readonly notImported: readonly NotImported[];
  /** Imported as they lie in the tree, though the base's attributes name a filter (such as `lfs`) for them. */
  readonly unfiltered: readonly UnfilteredPath[];
}

/** What to change in which commit's tree, and what the new commit says. */
export interface ImportChanges {
  readonly baseCommit: string;
  readonly set: readonly ManifestEntry[];
  readonly removed: readonly Uint8Array[];
  readonly content: TreeContent;
  readonly commit: CommitPlan;
  /** `leave` (the default): new paths that the base's ignore rules ignore are left out, by name. */
  readonly ignoredPaths?: 'leave' | 'import';
  /** The line-ending setting of the checkout that the tree comes from. */
  readonly autocrlf?: 'true' | 'input';
  /** Paths of `set`, by `pathKey`, whose content is as in the base: they keep its blob, whatever form it has there. */
  readonly sameContent?: ReadonlySet<string>;
}

/** The entries to set and the paths to take out that turn the tree of `base` into that of `next`. */
export function changesBetween(
  base: Iterable<ManifestEntry>,
  next: Iterable<ManifestEntry>,
): Pick<ImportChanges, 'set' | 'removed'> & { readonly sameContent: ReadonlySet<string> } {
  const difference = compareManifests(base, next);
  const after = [...difference.changed, ...difference.modeChanged, ...difference.typeChanged].map((change) => change.after);
  const sameContent = new Set(difference.modeChanged.map((change) => pathKey(change.path)));
  return { set: [...difference.added, ...after], removed: difference.deleted.map((entry) => entry.path), sameContent };
}

const LIMITS = { timeoutMs: GIT_LOCAL_TIMEOUT_MS, maxOutputBytes: GIT_SMALL_OUTPUT_BYTES } as const;

/**
 * Commits changes on top of `baseCommit` through an index of its own that is thrown away; paths not named stay as they are in the base.
 * Throws CodedError `content_mismatch`, `tree_not_as_planned`, `base_missing`, and those of `runGit`.
 */
export async function importChanges(gitDir: string, input: ImportChanges): Promise<ImportedCommit> {
  const baseTree = await treeOf(gitDir, input.baseCommit);
  const base = await listTree(gitDir, baseTree);
  const fresh = input.set.filter((entry) => entry.kind !== 'directory' && !base.has(pathKey(entry.path))).map((entry) => entry.path);
  const ignored = input.ignoredPaths === 'import' ? new Set<string>() : await findIgnored(gitDir, base, fresh);
  const plan = planTreeChange(base, input.set, input.removed, ignored);
  return await withScratchFolder(async (folder) => {
    const indexFile = join(folder, 'index');
    await runGit(['read-tree', '--end-of-options', baseTree], { gitDir, indexFile, ...LIMITS });
    const { shaOf, unfiltered } = await writeContents(gitDir, base, plan, input);
    const tree = await writeTree(gitDir, indexFile, baseTree.length, plan, shaOf);
    compareListings(expectedListing(base, plan, shaOf), await listTree(gitDir, tree));
    const found = { tree, notImported: plan.notImported, unfiltered };
    if (tree === baseTree) return { ...found, commit: input.baseCommit, unchanged: true };
    return { ...found, commit: await writeCommit(gitDir, tree, input.baseCommit, input.commit), unchanged: false };
  });
}

type ShaOf = (entry: ManifestEntry) => string;

async function writeContents(
  missionDir: string,
  base: TreeListing,
  plan: TreeChangePlan,
  input: ImportChanges,
): Promise<{ readonly shaOf: ShaOf; readonly unfiltered: readonly UnfilteredPath[] }> {
  const kept = new Map<string, string>();
  for (const { path } of plan.set) {
    const old = base.get(pathKey(path));
    if (old?.mode.startsWith('100') === true && input.sameContent?.has(pathKey(path)) === true) kept.set(pathKey(path), old.sha);
  }
  const entries = plan.set.filter((entry) => !kept.has(pathKey(entry.path)));
  const written = await writeBlobs(missionDir, entries, input.content);
  const { autocrlf } = input;
  const cleaned = await cleanContents(missionDir, base, entries, autocrlf === undefined ? written : { ...written, autocrlf });
  const shaOf: ShaOf = ({ path, sha256 }) => kept.get(pathKey(path)) ?? cleaned.blobs.get(pathKey(path)) ?? written.blobs.get(sha256) ?? '';
  return { shaOf, unfiltered: cleaned.unfiltered };
}

/** The tree of a commit. Throws CodedError `base_missing` when it is not here. */
export async function treeOf(gitDir: string, commit: string): Promise<string> {
  const missing = (): CodedError => new CodedError('base_missing', `commit ${commit} is not in the repository`, { id: commit });
  if (!isCommitId(commit)) throw missing();
  const found = await runGit(['rev-parse', '--verify', '--quiet', '--end-of-options', `${commit}^{tree}`], {
    gitDir,
    ...LIMITS,
    exitCodes: [0, 1, 128],
  });
  if (found.exitCode !== 0) throw missing();
  return textOf(found.stdout).split('\n').at(-1) ?? '';
}

async function writeTree(gitDir: string, indexFile: string, idLength: number, plan: TreeChangePlan, shaOf: ShaOf): Promise<string> {
  await runGit(['update-index', '-z', '--index-info'], { gitDir, indexFile, input: indexInfo(idLength, plan, shaOf), ...LIMITS });
  const { stdout } = await runGit(['write-tree'], { gitDir, indexFile, ...LIMITS });
  return textOf(stdout);
}

async function* indexInfo(idLength: number, plan: TreeChangePlan, shaOf: ShaOf): AsyncGenerator<Uint8Array> {
  const none = '0'.repeat(idLength);
  const end = Buffer.from([0]);
  // Removals first: git replaces a file by a folder of the same name, and the other way round, without a word.
  for (const path of plan.remove) yield Buffer.concat([Buffer.from(`0 ${none}\t`), path, end]);
  for (const entry of plan.set) yield Buffer.concat([Buffer.from(`${modeOf(entry)} ${shaOf(entry)}\t`), entry.path, end]);
}

function compareListings(expected: ReadonlyMap<string, string>, found: TreeListing): void {
  const odd: string[] = [];
  for (const [key, want] of expected) {
    const entry = found.get(key);
    if (entry === undefined || `${entry.mode} ${entry.sha}` !== want) odd.push(key);
  }
  for (const key of found.keys()) if (!expected.has(key)) odd.push(key);
  if (odd.length === 0) return;
  const named = odd.slice(0, 3).map((key) => readableName(keyPath(key)));
  throw new CodedError('tree_not_as_planned', `git wrote ${odd.length} paths otherwise than planned: ${named.join(', ')}`);
}

async function writeCommit(gitDir: string, tree: string, parent: string, plan: CommitPlan): Promise<string> {
  const { stdout } = await runGit(['commit-tree', tree, '-p', parent, '-F', '-'], {
    gitDir,
    input: Buffer.from(plan.message),
    env: {
      GIT_AUTHOR_NAME: plan.author.name,
      GIT_AUTHOR_EMAIL: plan.author.email,
      GIT_AUTHOR_DATE: plan.date,
      GIT_COMMITTER_NAME: plan.committer.name,
      GIT_COMMITTER_EMAIL: plan.committer.email,
      GIT_COMMITTER_DATE: plan.date,
    },
    ...LIMITS,
  });
  return textOf(stdout);
}
