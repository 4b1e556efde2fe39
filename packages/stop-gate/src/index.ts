export { tailOfText } from './bound-text.ts';
export { composeSettings, type HookCommand, type HookParts, type SettingsDocument } from './compose-settings.ts';
export {
  type AgentEnd,
  type Change,
  type CheckResult,
  checkIsDue,
  decideRound,
  type RoundDecision,
  type RoundFacts,
} from './decide-round.ts';
export { drainTap, parseToolUse, type TapDrain, type ToolUse } from './drain-tap.ts';
export { type CheckInput, type CheckInputKind, checkInputsChanged } from './find-check-inputs.ts';
export { gradeVerification, type VerificationFacts, type VerificationLevel, type VerificationReason } from './grade-verification.ts';
export { HOOK_CONFIG, HOOK_STATE, type HookAnswer, type HookFile, planHookFiles, stopHookScript, tapHookScript } from './hook-script.ts';
export { type DeliveredChange, type DeliveryVerdict, judgeDelivery } from './judge-delivery.ts';
export {
  CHECK_FEEDBACK_BYTES,
  CHECK_TIMEOUT_MS,
  COMMAND_FEEDBACK_BYTES,
  HOOK_CHECK_TIMEOUT_S,
  HOOK_LOG_MAX_BYTES,
  HOOK_TIMEOUT_S,
  MAX_CHECK_BYTES,
  MAX_GATE_ROUNDS,
  MAX_HOOK_BLOCKS,
  MAX_PROTECTED_GLOBS,
  TAP_EVENT_MAX_BYTES,
  TAP_MAX_BYTES,
} from './limits.ts';
export { type Glob, matchesGlob, parseGlob, parseGlobs } from './match-glob.ts';
export { type Gate, type GatedPhase, type PhaseKind, planGate, planTurnGate } from './plan-gate.ts';
export { planRestore, type RestorePlan } from './plan-restore.ts';
export { type HookOutcome, type HookReason, type HookVerdict, readHookOutcome } from './read-hook-outcome.ts';
export { GATE_REASONS, type GateReason, STOP_GATE_ERROR_CODES, StopGateError, type StopGateErrorCode } from './reasons.ts';
