/** Why work is not written under a seat's own key; closed. */
export const RESOLVE_REASONS = ['role_never_seated', 'seat_not_linked', 'no_key_stored', 'store_unreadable', 'key_rejected'] as const;
/** One member of {@link RESOLVE_REASONS}. */
export type ResolveReason = (typeof RESOLVE_REASONS)[number];

/** What became of one role when keys were minted; closed. */
export const MINT_OUTCOMES = ['minted', 'already_stored', 'no_seat', 'forbidden', 'failed'] as const;
/** One member of {@link MINT_OUTCOMES}. */
export type MintOutcomeKind = (typeof MINT_OUTCOMES)[number];

/** What became of one role when keys were revoked; closed. */
export const REVOKE_OUTCOMES = ['revoked', 'not_stored', 'no_seat', 'failed'] as const;
/** One member of {@link REVOKE_OUTCOMES}. */
export type RevokeOutcomeKind = (typeof REVOKE_OUTCOMES)[number];

/** What became of one role when keys were exchanged; closed. */
export const ROTATE_OUTCOMES = ['rotated', 'not_stored', 'no_seat', 'forbidden', 'failed'] as const;
/** One member of {@link ROTATE_OUTCOMES}. */
export type RotateOutcomeKind = (typeof ROTATE_OUTCOMES)[number];

/** Codes of a store's failure; closed, so that no raw text of a helper has to travel. */
export const STORE_FAULTS = [
  'locked',
  'denied',
  'helper_missing',
  'service_missing',
  'helper_failed',
  'io',
  'corrupt',
  'timed_out',
  'unknown',
] as const;
/** One member of {@link STORE_FAULTS}. */
export type StoreFault = (typeof STORE_FAULTS)[number];

/** Code of {@link SeatKeysError}. */
export type SeatKeysErrorCode = 'key_address_invalid';

/** A broken contract of the caller; expected outcomes are return values. */
export class SeatKeysError extends Error {
  readonly code: SeatKeysErrorCode;

  constructor(code: SeatKeysErrorCode, message: string) {
    super(message);
    this.name = 'SeatKeysError';
    this.code = code;
  }
}
