/** Most nodes of one graph: each costs a boot, a session and a collection of its own. */
export const MAX_MEMBERS = 6;
/** Most rounds of a shape that repeats. */
export const MAX_ROUNDS = 3;
/** Most turns of one run, all rounds together: a member that opens and closes takes one more than there are rounds. */
export const MAX_STEPS = MAX_MEMBERS * (MAX_ROUNDS + 1);
/** Most turns that may run at once. */
export const MAX_PARALLEL = 6;
/** Longest role, in characters. */
export const MAX_ROLE_LENGTH = 200;
/** Longest backend, model or seat name, in characters. */
export const MAX_NAME_LENGTH = 128;
/** Longest rationale of a proposed member, in characters. */
export const MAX_RATIONALE_LENGTH = 2000;
/** Characters of an earlier turn's closing report that a later turn is given. */
export const MAX_REPORT_LENGTH = 4000;
/** Version of the checkpoint document. */
export const CHECKPOINT_VERSION = 1;
