import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ManifestEntry } from '@firecrew/artifact-capture';
import type { CommitPlan } from '@firecrew/delivery';
import { type CommitTraits, describeCommit } from './describe-commit.ts';
import { exportTree } from './export-tree.ts';
import { type FetchedBranch, type FetchTask, fetchBranch } from './fetch-branch.ts';
import { pathKey } from './git-records.ts';
import { findIgnored } from './ignored-paths.ts';
import { changesBetween, type ImportedCommit, importChanges, treeOf } from './import-changes.ts';
import { listTree, type TreeListing } from './list-tree.ts';
import { type GuestGit, type GuestGitOptions, makeGuestGit } from './make-guest-git.ts';
import { isAncestor, type PackImport, readPack, writePack } from './move-packs.ts';
import { type PushOutcome, pushByComparison } from './push-branch.ts';
import { type CommitDiff, readDiff } from './read-diff.ts';
import { type ServerRemote, serverAccess } from './remote-access.ts';
import type { TreeContent } from './write-blobs.ts';

/** A collected tree that becomes a commit on top of a base. */
export interface SnapshotImport {
  readonly baseCommit: string;
  /** The manifest of the tree the guest was given. */
  readonly baseManifest: Iterable<ManifestEntry>;
  /** The manifest of the tree that came back. */
  readonly manifest: Iterable<ManifestEntry>;
  readonly content: TreeContent;
  readonly commit: CommitPlan;
  /** `leave` (the default): new paths that the base's ignore rules ignore are left out, by name. */
  readonly ignoredPaths?: 'leave' | 'import';
  /** `core.autocrlf` of the checkout that the base tree comes from. */
  readonly autocrlf?: 'true' | 'input';
}

/** A caller's uncommitted changes that become a commit on top of their HEAD. */
export interface SyntheticBaseImport {
  readonly headCommit: string;
  /** The manifest of the snapshot the caller sent. */
  readonly manifest: Iterable<ManifestEntry>;
  /** Paths that differ from HEAD, and paths that are gone; both as `listUploadFiles` gives them. */
  readonly changed: readonly Uint8Array[];
  readonly removed: readonly Uint8Array[];
  readonly content: TreeContent;
  readonly commit: CommitPlan;
  /** `core.autocrlf` of the caller's checkout. */
  readonly autocrlf?: 'true' | 'input';
}

/** A push of one commit to one branch. */
export interface MissionPush extends ServerRemote {
  readonly branch: string;
  readonly commit: string;
  readonly timeoutMs?: number;
}

/** The bare repository of one mission, owned by the host: a cache that packs and snapshots rebuild. */
export class MissionRepository {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  /** The repository at `dir` (absolute), made when it is not there yet. */
  static async init(dir: string, options: { readonly objectFormat?: 'sha1' | 'sha256' } = {}): Promise<MissionRepository> {
    await mkdir(join(dir, 'objects', 'pack'), { recursive: true, mode: 0o700 });
    await mkdir(join(dir, 'refs', 'heads'), { recursive: true, mode: 0o700 });
    const extension = options.objectFormat === 'sha256' ? '[extensions]\n\tobjectFormat = sha256\n' : '';
    const version = extension === '' ? 0 : 1;
    const core = `[core]\n\trepositoryformatversion = ${version}\n\tfilemode = true\n\tbare = true\n${extension}`;
    await writeFile(join(dir, 'config'), `${core}[uploadpack]\n\tallowAnySHA1InWant = true\n`, { mode: 0o600 });
    await writeFile(join(dir, 'HEAD'), 'ref: refs/heads/main\n', { mode: 0o600 });
    return new MissionRepository(dir);
  }

  /** Reads a pack; with `head` checks that it is complete. Throws CodedError `pack_unreadable`, `pack_incomplete`, `shallow_malformed`. */
  async importPack(packFile: string, options: PackImport = {}): Promise<void> {
    await readPack(this.dir, packFile, options);
  }

  /** Commits what differs between two manifests. Throws CodedError `base_missing`, `content_mismatch`, `tree_not_as_planned`. */
  async importSnapshot(input: SnapshotImport): Promise<ImportedCommit> {
    const { baseManifest, manifest, ...rest } = input;
    return importChanges(this.dir, { ...rest, ...changesBetween(baseManifest, manifest) });
  }

  /** Commits a caller's uncommitted changes; paths they did not change stay as in HEAD. Errors as `importSnapshot`. */
  async importSyntheticBase(input: SyntheticBaseImport): Promise<ImportedCommit> {
    const { headCommit, manifest, changed, ...rest } = input;
    const wanted = new Set(changed.map(pathKey));
    const set = [...manifest].filter((entry) => wanted.has(pathKey(entry.path)));
    return importChanges(this.dir, { ...rest, baseCommit: headCommit, set, ignoredPaths: 'import' });
  }

  /** Patch, paths and sizes between two commits; what failed is in `errors`, never an empty diff. */
  async diff(base: string, commit: string): Promise<CommitDiff> {
    return readDiff(this.dir, base, commit);
  }

  /** Writes the tree of a commit into a new folder, byte for byte. Throws CodedError `base_missing`. */
  async exportTree(commit: string, folder: string): Promise<void> {
    return exportTree(this.dir, commit, folder);
  }

  /** Every file, link and submodule of a commit by byte path (one character per byte). */
  async listTree(commit: string): Promise<TreeListing> {
    return listTree(this.dir, await treeOf(this.dir, commit));
  }

  /** Those of `paths` (files) that the ignore rules of a commit ignore, one character per byte. */
  async ignoredPaths(commit: string, paths: readonly Uint8Array[]): Promise<ReadonlySet<string>> {
    return findIgnored(this.dir, await this.listTree(commit), paths);
  }

  /** Writes the `.git` of a guest as a tar. */
  async makeGuestGit(commit: string, outFile: string, options: GuestGitOptions = {}): Promise<GuestGit> {
    return makeGuestGit(this.dir, commit, outFile, options);
  }

  /** Writes a pack of `commit` without what `not` reaches; gives its size in bytes. */
  async packFor(commit: string, options: { readonly not?: readonly string[] }, outFile: string): Promise<number> {
    return writePack({ gitDir: this.dir }, commit, options.not ?? [], outFile);
  }

  /** Compares with the remote and pushes. Throws CodedError `remote_refused`; what the remote says is an outcome. */
  async push(input: MissionPush): Promise<PushOutcome> {
    const { url, access } = serverAccess(input);
    const { branch, commit, timeoutMs } = input;
    const place = { gitDir: this.dir };
    return pushByComparison({ place, remote: url, branch, commit, access, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  }

  /** Fetches one branch with its whole history. Throws CodedError `remote_unreadable`, `remote_empty`, `remote_branch_missing`, `remote_shallow`. */
  async fetch(task: FetchTask): Promise<FetchedBranch> {
    return fetchBranch(this.dir, task);
  }

  /** Shallow history, large-file filters and submodules of a commit. */
  async describe(commit: string): Promise<CommitTraits> {
    return describeCommit(this.dir, commit);
  }

  /** The tree of a commit. Throws CodedError `base_missing`. */
  async treeOf(commit: string): Promise<string> {
    return treeOf(this.dir, commit);
  }

  /** Whether `ancestor` is in the history of `commit`; undefined when it is not here. */
  async isAncestor(ancestor: string, commit: string): Promise<boolean | undefined> {
    return isAncestor({ gitDir: this.dir }, ancestor, commit);
  }
}
