/** Most nodes of one graph: each costs a boot, a session and a collection of its own. */
export const MAX_MEMBERS = 6;
/** Longest role, in characters. */
export const MAX_ROLE_LENGTH = 200;
/** Longest backend, model or seat name, in characters. */
export const MAX_NAME_LENGTH = 128;
/** Characters of an earlier turn's closing report that a later turn is given. */
export const MAX_REPORT_LENGTH = 4000;
/** Version of the checkpoint document. */
export const CHECKPOINT_VERSION = 1;
