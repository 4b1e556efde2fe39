/** Why a node is left out; closed. `capacity_unknown` and `no_recent_health` are never a full node. */
export const UNFIT_REASONS = [
  'draining',
  'not_connected',
  'no_recent_health',
  'capacity_unknown',
  'no_disk',
  'at_capacity',
  'never_fits',
  'not_capable',
] as const;
/** One member of {@link UNFIT_REASONS}. */
export type UnfitReason = (typeof UNFIT_REASONS)[number];

/** One of the reasons with its numbers; sizes in MiB, ages in ms. */
export type UnfitCause =
  | { readonly reason: 'draining' | 'not_connected' | 'not_capable' }
  /** Age of the reading that does not count, negative for one from the future; absent where there is no reading. */
  | { readonly reason: 'no_recent_health'; readonly ageMs?: number }
  | { readonly reason: 'capacity_unknown'; readonly error: string }
  /** Free disk as observed, and what of it is promised to others. */
  | { readonly reason: 'no_disk'; readonly freeMib: number; readonly promisedMib: number }
  /** Claims on the node, and the worse of observed and committed use. */
  | { readonly reason: 'at_capacity'; readonly committedMib: number; readonly usedMib: number; readonly totalMib: number }
  /** What the turn claims, and the memory of the node. */
  | { readonly reason: 'never_fits'; readonly memoryMib: number; readonly diskMib: number; readonly totalMib: number };

/** Codes of {@link PlacementError}; closed. */
export const PLACEMENT_ERROR_CODES = ['demand_invalid'] as const;
/** One member of {@link PLACEMENT_ERROR_CODES}. */
export type PlacementErrorCode = (typeof PLACEMENT_ERROR_CODES)[number];

/** A broken contract of the caller; expected outcomes are return values. */
export class PlacementError extends Error {
  readonly code: PlacementErrorCode;

  constructor(code: PlacementErrorCode, message: string) {
    super(message);
    this.name = 'PlacementError';
    this.code = code;
  }
}
