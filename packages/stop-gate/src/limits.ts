/** Rounds of one attempt before the host gives up; the sole authority. */
export const MAX_GATE_ROUNDS = 3;
/** Refusals of the guest's own Stop hook before it lets the agent go; advisory. */
export const MAX_HOOK_BLOCKS = 3;
/** Bytes of a failed check's output, counted from its end, that an agent is shown. */
export const CHECK_FEEDBACK_BYTES = 1500;
/** Time limit of the check on the host's side, in ms. */
export const CHECK_TIMEOUT_MS = 900_000;
/** Time limit of the check inside the Stop hook, in seconds; below {@link HOOK_TIMEOUT_S}, so that the hook can still answer. */
export const HOOK_CHECK_TIMEOUT_S = 540;
/** Time limit of the Stop hook in the settings document, in seconds. */
export const HOOK_TIMEOUT_S = 600;
/** Longest check command, in bytes of UTF-8: fits one argument of the kernel's 131,071. */
export const MAX_CHECK_BYTES = 98_304;
/** Bytes of the check command, from its start, that feedback repeats. */
export const COMMAND_FEEDBACK_BYTES = 1000;
/** Most protected globs of one gate. */
export const MAX_PROTECTED_GLOBS = 100;
/** Bytes of one tool event that the tap keeps; a longer one is cut and then skipped by the reader. */
export const TAP_EVENT_MAX_BYTES = 1_048_576;
/** Bytes of the tap that one drain reads. */
export const TAP_MAX_BYTES = 16_777_216;
/** Bytes of the hook's log that are read. */
export const HOOK_LOG_MAX_BYTES = 262_144;
