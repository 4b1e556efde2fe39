/** The codes of `DeliveryError`: a caller broke the contract of a function. */
export type DeliveryErrorCode = 'invalid_mission_id' | 'invalid_commit_id' | 'invalid_branch' | 'invalid_date';

/** A broken contract, recognised by its `code`. */
export class DeliveryError extends Error {
  readonly code: DeliveryErrorCode;

  constructor(code: DeliveryErrorCode, message: string) {
    super(message);
    this.name = 'DeliveryError';
    this.code = code;
  }
}
