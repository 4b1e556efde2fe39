export { findAllowanceRefusal } from './find-allowance-refusal.ts';
export {
  askMintRight,
  type MintOutcome,
  type MintRun,
  mintSeatKeys,
  PROBE_SEAT,
  renderOutcome,
  type SeatContext,
  type SeatTarget,
} from './mint-seat-keys.ts';
export { noteVerified, type VerifiedNote } from './note-verified.ts';
export {
  formatKeyAddress,
  type Issuer,
  type IssuerReply,
  type IssuerStatus,
  type KeyAddress,
  type KeyStore,
  type MintReply,
  type MintRequest,
  type StoreChange,
  type StoredKey,
  type StoreRead,
  serverHostOf,
} from './ports.ts';
export {
  MINT_OUTCOMES,
  type MintOutcomeKind,
  RESOLVE_REASONS,
  REVOKE_OUTCOMES,
  type ResolveReason,
  type RevokeOutcomeKind,
  ROTATE_OUTCOMES,
  type RotateOutcomeKind,
  SeatKeysError,
  type SeatKeysErrorCode,
  STORE_FAULTS,
  type StoreFault,
} from './reasons.ts';
export {
  checkPayment,
  explainReason,
  type FallbackPolicy,
  type PaymentCheck,
  type Resolution,
  type ResolveFacts,
  resolveSeatKey,
} from './resolve-seat-key.ts';
export { type RevokeOutcome, revokeSeatKeys } from './revoke-seat-keys.ts';
export { type RotateOutcome, rotateSeatKeys } from './rotate-seat-keys.ts';
export { SeatKey } from './seat-key.ts';
export { describeStoreError, type StoreError, storeErrorOf } from './store-error.ts';
