export type { UnfilteredPath } from './clean-contents.ts';
export { type CommitTraits, describeCommit } from './describe-commit.ts';
export { exportTree } from './export-tree.ts';
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
export type { CommitDiff } from './read-diff.ts';
export { IGNORE_FILE_MAX_CHARS, IGNORE_FILES_MAX, type IgnoreFile, readIgnoreFiles } from './read-ignore-files.ts';
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
export { sweepScratchFolders } from './scratch-folder.ts';
export { packWholeHistory, type UnshallowOptions } from './unshallow.ts';
export type { OpenEntry, TreeContent } from './write-blobs.ts';
