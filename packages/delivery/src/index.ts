export {
  decideFileUpload,
  decideLocalUpload,
  type FileStanding,
  type FileUploadDecision,
  type FileUploadInput,
  type LeftOutReason,
  type LocalUploadDecision,
  type LocalUploadInput,
  type LocalUploadNote,
  type LocalUploadRefusal,
} from './decide-local-upload.ts';
export {
  decideAfterRejection,
  decidePush,
  type PushAction,
  type PushDecision,
  type PushDecisionReason,
  type PushInput,
} from './decide-push.ts';
export {
  type CredentialReason,
  decideRemoteUrl,
  type RemoteRefusal,
  type RemoteTransport,
  type RemoteUrlDecision,
  type RemoteUrlInput,
} from './decide-remote-url.ts';
export { DeliveryError, type DeliveryErrorCode } from './delivery-error.ts';
export { findProtectedPaths, isProtectedPath, type ProtectedPath, type ProtectedReason } from './find-protected-paths.ts';
export { isSecretShaped, type SecretReason } from './is-secret-shaped.ts';
export { mayPass } from './may-pass.ts';
export {
  BRANCH_MAX_CHARS,
  BRANCH_PREFIX,
  type BranchInput,
  isCommitId,
  isSafeBranchName,
  nameBranch,
  nameDivergedBranch,
  SHORT_ID_CHARS,
  SLUG_MAX_CHARS,
  slugOf,
} from './name-branch.ts';
export {
  PUSH_DETAIL_MAX_CHARS,
  PUSH_OUTPUT_MAX_BYTES,
  type PushReason,
  type PushResult,
  type PushVerdict,
  parsePush,
} from './parse-push.ts';
export {
  type CheckState,
  type CommitIdentity,
  type CommitInput,
  type CommitPlan,
  commitDate,
  DEFAULT_IDENTITY,
  planCommit,
  planSyntheticBase,
  SUBJECT_MAX_CHARS,
  TRAILER_MAX_CHARS,
} from './plan-commit.ts';
