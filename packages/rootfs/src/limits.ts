/** Bytes of all layers of one image together, unpacked: 16 GiB. */
export const MAX_IMAGE_BYTES = 16 * 1024 * 1024 * 1024;
/** Entries of all layers of one image together. */
export const MAX_IMAGE_ENTRIES = 1_000_000;
/** Layers of one image; container engines stop at 127. */
export const MAX_IMAGE_LAYERS = 256;
/** Bytes of a path inside an image, as the kernel bounds it. */
export const MAX_PATH_BYTES = 4_095;
/** Bytes of one component of a path; squashfs stores no more. */
export const MAX_COMPONENT_BYTES = 255;
/** Folders above one entry. */
export const MAX_PATH_DEPTH = 256;
/** Bytes of the extension headers in front of one entry. */
export const MAX_META_BYTES = 1024 * 1024;
/** Links followed on the way to one entry, as the kernel bounds it. */
export const MAX_LINK_HOPS = 40;
/** Steps through the tree that all paths of one image may take together. */
export const MAX_RESOLVE_STEPS = 100_000_000;
/** Bytes of an index, a manifest or a configuration of an image. */
export const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;

/** The bounds that an untrusted image is held to. */
export interface ImageLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
  readonly maxLayers: number;
  readonly maxMetaBytes: number;
  readonly maxResolveSteps: number;
}

export const DEFAULT_IMAGE_LIMITS: ImageLimits = {
  maxBytes: MAX_IMAGE_BYTES,
  maxEntries: MAX_IMAGE_ENTRIES,
  maxLayers: MAX_IMAGE_LAYERS,
  maxMetaBytes: MAX_META_BYTES,
  maxResolveSteps: MAX_RESOLVE_STEPS,
};
