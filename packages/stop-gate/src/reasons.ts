/** Why a round ended as it did; closed. */
export const GATE_REASONS = [
  'check_passed',
  'changed',
  'no_gate',
  'no_change',
  'ignored_only',
  'agent_failed',
  'check_failed',
  'check_timed_out',
  'check_unrunnable',
  'check_not_run',
  'change_unknown',
] as const;
/** One member of {@link GATE_REASONS}. */
export type GateReason = (typeof GATE_REASONS)[number];

/** Codes of {@link StopGateError}; closed. */
export const STOP_GATE_ERROR_CODES = [
  'gate_invalid',
  'round_invalid',
  'check_contradictory',
  'glob_invalid',
  'hook_path_unsafe',
  'hook_invalid',
] as const;
/** One member of {@link STOP_GATE_ERROR_CODES}. */
export type StopGateErrorCode = (typeof STOP_GATE_ERROR_CODES)[number];

/** A broken contract of the caller; expected outcomes are return values. */
export class StopGateError extends Error {
  readonly code: StopGateErrorCode;

  constructor(code: StopGateErrorCode, message: string) {
    super(message);
    this.name = 'StopGateError';
    this.code = code;
  }
}
