export { byteKey, compareBytes, fromByteKey } from './bytes.ts';
export { CaptureError, MAX_READABLE_NAME, readableName } from './capture-error.ts';
export { type NameStatus, parseNameStatus, type StatusLetter } from './diff/parse-name-status.ts';
export { type DiffStat, type FileStat, parseNumstat, sumStats } from './diff/parse-numstat.ts';
export {
  type CommandOutput,
  clampBothEnds,
  type DiffError,
  type DiffReadings,
  type DiffRecord,
  MAX_CAPTURED_PATHS,
  MAX_DIFF_ERROR_CHARS,
  MAX_PATCH_BYTES,
  recordDiff,
} from './diff/record-diff.ts';
export { nameBytes, nameText } from './name-text.ts';
export { type ArchivedArtifact, archivePaths, MAX_ARCHIVE_FOLDERS } from './output/archive-path.ts';
export { documentName } from './output/document-name.ts';
export { isInside } from './output/is-inside.ts';
export {
  EMPTY_MARKER_NAME,
  emptyMarker,
  type KeptFiles,
  keepFiles,
  type LeftOutRule,
  type ScaffoldingFile,
} from './output/keep-files.ts';
export { type ArtifactMime, mimeTypeOf } from './output/mime-type.ts';
export { MAX_DOWNLOAD_NAME, safeDownloadName } from './output/safe-download-name.ts';
export { CAPTURE_ERROR_CODES, type CaptureErrorCode, SKIP_REASONS, type SkipReason } from './reasons.ts';
export { TAR_BLOCK_BYTES } from './tar/parse-header.ts';
export { type TarEvent, TarReader } from './tar/tar-reader.ts';
export { putFileHeader, TAR_END_BYTES, type TarHeaderFields, tarEnd, tarPadding, writeTarHeader } from './tar/write-tar.ts';
export { compareManifests, type ManifestChange, type ManifestDifference } from './tree/compare-manifests.ts';
export { type CommitChange, decideChange } from './tree/decide-change.ts';
export {
  decideExclusion,
  EXCLUDABLE_NAMES,
  type ExclusionVerdict,
  type FolderFacts,
  HARD_EXCLUDED_NAMES,
} from './tree/decide-exclusion.ts';
export { isGitmodulesName, isGitName } from './tree/git-names.ts';
export { DEFAULT_TREE_LIMITS, MAX_COMPONENT_BYTES, MAX_TRAILING_BYTES, type TreeLimits, treeLimits } from './tree/limits.ts';
export { decodeManifest, encodeManifest, MANIFEST_FORMAT, MANIFEST_START, manifestRecord, snapshotIdOf } from './tree/manifest.ts';
export { compareEntries, type EntryKind, type ManifestEntry, type Sha256Hex } from './tree/manifest-entry.ts';
export { type NormalPath, normalisePath } from './tree/normalise-path.ts';
export type { AdmittedEntry } from './tree/tree-guard.ts';
