export {
  decideRetry,
  FETCH_ABSENT_MS,
  FETCH_PAUSE_MAX_MS,
  FETCH_PAUSE_MIN_MS,
  FETCH_PROGRESS_BYTES,
  FETCH_REST_MS,
  type FetchState,
  faultOf,
  MAX_FETCH_TRIES,
  NOT_TRIED,
} from './fetch/decide-retry.ts';
export { type ArtifactOrigin, type FetchOptions, fetchArtifact } from './fetch/fetch-artifact.ts';
export { judgeReply } from './fetch/judge-reply.ts';
export type { TransferStep } from './fetch/plan-transfer.ts';
export { type BuildImageOptions, buildImage, IMAGE_BLOCK_BYTES, IMAGE_ZSTD_LEVEL, ROOT_FILE } from './image/build-image.ts';
export { FIXED_TIME_SECONDS, type ImageSource } from './image/lay-out-source.ts';
export type { NpmPackage } from './image/npm-packages.ts';
export { buildInitrd, type InitrdModule } from './initrd/build-initrd.ts';
export { type CpioEntry, writeCpio } from './initrd/write-cpio.ts';
export {
  BZIMAGE_FILE,
  type ExtractKernelOptions,
  extractKernel,
  GUEST_MODULES,
  INITRD_FILE,
  REQUIRED_MODULES,
  VMLINUX_FILE,
} from './kernel/extract-kernel.ts';
export {
  DEFAULT_IMAGE_LIMITS,
  type ImageLimits,
  MAX_COMPONENT_BYTES,
  MAX_DOCUMENT_BYTES,
  MAX_IMAGE_BYTES,
  MAX_IMAGE_ENTRIES,
  MAX_IMAGE_LAYERS,
  MAX_LINK_HOPS,
  MAX_META_BYTES,
  MAX_PATH_BYTES,
  MAX_PATH_DEPTH,
  MAX_RESOLVE_STEPS,
} from './limits.ts';
export type { Architecture } from './oci/choose-image.ts';
export {
  type BuildPayloadOptions,
  buildPayload,
  MAX_PAYLOAD_BYTES,
  PAYLOAD_BLOCK_BYTES,
  PAYLOAD_FILE,
  PAYLOAD_MOUNT,
  PAYLOAD_ZSTD_LEVEL,
  type PayloadEntry,
  payloadEntries,
  writePayload,
} from './payload/build-payload.ts';
export type { OnProgress, Progress } from './progress.ts';
export { linksOf, MAX_RECIPE_BYTES, npmPackagesOf, parseRecipe, type Recipe } from './recipe/recipe.ts';
export { createScratch, SCRATCH_LABEL, type ScratchSpec } from './scratch/create-scratch.ts';
export { type DiskState, readDiskState } from './setup-layers/disk-state.ts';
export { DEFAULT_LAYER_SETTINGS, type LayerSettings, layerBoundsOf } from './setup-layers/layer-bounds.ts';
export { LAYER_FORMAT, type LayerFile, type LayerInputs, type LayerKey, layerKeyOf } from './setup-layers/layer-key.ts';
export { takeLayerLock } from './setup-layers/layer-lock.ts';
export { LayerStore, type LayerStoreBounds, type OpenLayer } from './setup-layers/layer-store.ts';
export type { KeptLayer, LayerBounds } from './setup-layers/plan-layer-collection.ts';
export {
  type ArtifactDigest,
  type ArtifactFacts,
  type ArtifactFile,
  type ArtifactKind,
  type ArtifactManifest,
  artifactIdSchema,
  type ImageManifest,
  type KernelManifest,
  MAX_MANIFEST_BYTES,
  type ManifestSource,
  type PayloadManifest,
} from './store/artifact-manifest.ts';
export { ArtifactNames, checkArtifactName, isArtifactName } from './store/artifact-names.ts';
export {
  type BootArtifacts,
  type BootFiles,
  type BootReferences,
  DEFAULT_IMAGE_NAME,
  DEFAULT_REFERENCES,
  findBootArtifacts,
  KERNEL_NAME,
  lookUpBootArtifacts,
  type MissingArtifact,
  openBootFiles,
  PAYLOAD_NAME,
  PLAIN_PATH,
} from './store/boot-files.ts';
export { ABANDONED_AFTER_MS, COLLECTION_GRACE_MS, type Collection, collectGarbage } from './store/collect-garbage.ts';
export {
  type DamagedArtifact,
  ImageStore,
  type OpenArtifact,
  piecesFolder,
  type SharedFile,
  type StagingFolders,
  type StoredArtifact,
  type VerifiedFile,
} from './store/image-store.ts';
export { exportArtifact, importArtifact } from './store/move-artifacts.ts';
