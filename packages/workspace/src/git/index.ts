export { type CommitTraits, describeCommit } from './describe-commit.ts';
export type { FetchedBranch, FetchTask } from './fetch-branch.ts';
export type { GitConfigEntry, GitProtocol } from './git-settings.ts';
export { clampBothEnds, GIT_TEXT_MAX_CHARS, redactGitText } from './git-text.ts';
export type { ImportedCommit } from './import-changes.ts';
export { inspectRepository, type LocalRepository } from './inspect-repository.ts';
export { listTree, type TreeEntry, type TreeListing } from './list-tree.ts';
export {
  type LeftOutFile,
  listUploadFiles,
  MAX_LEFT_OUT_NAMED,
  type UploadChoice,
  type UploadFile,
  type UploadList,
} from './list-upload-files.ts';
export {
  type BranchToWrite,
  type HeadPack,
  type LocalPush,
  packHead,
  pushBranch,
  type WrittenBranch,
  writeBranch,
} from './local-branches.ts';
export { GIT_HISTORY_DEPTH, GIT_HISTORY_MAX, type GuestGit, type GuestGitOptions } from './make-guest-git.ts';
export { type MissionPush, MissionRepository, type SnapshotImport, type SyntheticBaseImport } from './mission-repository.ts';
export { type PackImport, SHALLOW_FILE_MAX_BYTES } from './move-packs.ts';
export type { NotImported, NotImportedReason } from './plan-tree-change.ts';
export { MAX_PUSH_TRIES, type PushOutcome } from './push-branch.ts';
export { type CommitDiff, DIFF_ERROR_MAX_CHARS, type DiffStat, MAX_PATCH_BYTES, type NameStatusEntry } from './read-diff.ts';
export type { UserSettings } from './read-user-settings.ts';
export type { RemoteCredential, ServerRemote } from './remote-access.ts';
export {
  GIT_LISTING_MAX_BYTES,
  GIT_LOCAL_TIMEOUT_MS,
  GIT_PACK_TIMEOUT_MS,
  GIT_REMOTE_TIMEOUT_MS,
  GIT_SMALL_OUTPUT_BYTES,
  type GitOptions,
  type GitResult,
  runGit,
} from './run-git.ts';
export { type IgnoreFileOfCommit, readIgnoreFiles, snapshotCommit } from './snapshot-commit.ts';
export type { OpenEntry } from './write-blobs.ts';
