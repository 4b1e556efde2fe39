/** Bounds of a tree that is taken from an untrusted archive or packed into one. */
export interface TreeLimits {
  /** Entries, folders that are only implied included. */
  readonly maxEntries: number;
  /** Components of a path. */
  readonly maxDepth: number;
  /** Bytes of a path or of a link's target. */
  readonly maxNameBytes: number;
  /** Bytes of all paths and link targets together. */
  readonly maxNamesBytes: number;
  /** Bytes of one extension header. */
  readonly maxMetaBytes: number;
  /** Bytes of one file. */
  readonly maxFileBytes: number;
  /** Bytes of all files, copies by hard link and dropped payloads included. */
  readonly maxTotalBytes: number;
}

/** Bytes of one path component, as every common file system has it. */
export const MAX_COMPONENT_BYTES = 255;
/** Zero bytes accepted after the end mark of an archive. */
export const MAX_TRAILING_BYTES = 1024 * 1024;

/** The bounds used when the caller gives none. */
export const DEFAULT_TREE_LIMITS: TreeLimits = {
  maxEntries: 500_000,
  maxDepth: 128,
  maxNameBytes: 4096,
  maxNamesBytes: 64 * 1024 * 1024,
  maxMetaBytes: 1024 * 1024,
  maxFileBytes: 4 * 1024 ** 3,
  maxTotalBytes: 16 * 1024 ** 3,
};

/** The defaults with some bounds replaced. */
export function treeLimits(overrides: Partial<TreeLimits> = {}): TreeLimits {
  return { ...DEFAULT_TREE_LIMITS, ...overrides };
}
