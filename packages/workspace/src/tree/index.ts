export { BLOB_ZSTD_LEVEL, MAX_BLOB_WINDOW_LOG, type StoredBlob } from './blob-file.ts';
export { PACK_CHUNK_BYTES } from './chunk-builder.ts';
export { sha256Hex } from './content-hash.ts';
export { writeLent } from './lend-chunks.ts';
export { type PackedTree, type PackOptions, packTree } from './pack-tree.ts';
export type { PathSet } from './path-set.ts';
export type { ArchiveProof, ExpectedTrailer, ReadArchive } from './read-archive.ts';
export {
  type BlobEntry,
  type OpenBlobFile,
  openBlobFile,
  type ReadBlobOptions,
  readBlobEntries,
  readManifestOfBlob,
  readSnapshotBlob,
} from './read-snapshot.ts';
export { type ScannedTree, scanTree } from './scan-tree.ts';
export { STAGING_PREFIX } from './swap-folder.ts';
export { MAX_NAMED_DIFFERENCES, type TakenOut, takeTreeOut } from './take-out.ts';
export {
  type ArchiveTrailer,
  MAX_COUNTED_FILES,
  MAX_REPORTED_PATHS,
  type OmittedFolder,
  type PackReport,
  type PackSkipReason,
  type SkippedPath,
} from './tree-report.ts';
export type { BytePour, ByteSource, ByteStream } from './tree-sink.ts';
export {
  type LaidTree,
  type StoredTree,
  storeTree,
  storeTreeOver,
  type UnpackedTree,
  type UnpackOptions,
  unpackTree,
} from './unpack-tree.ts';
export type { TreeSelection } from './walk-tree.ts';
export {
  type ArchiveSnapshot,
  type CanonicaliseOptions,
  canonicaliseArchive,
  type DirectorySnapshot,
  type SnapshotBlob,
  snapshotDirectory,
  writeSnapshotBlob,
} from './write-snapshot.ts';
