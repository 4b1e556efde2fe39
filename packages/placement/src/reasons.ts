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
