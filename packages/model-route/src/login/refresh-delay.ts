/** How the last run of a login's program ended. */
export type LoginState =
  | { readonly kind: 'obtained'; readonly lifetimeMs: number | null; readonly everyMs: number }
  /** Failures in a row, from 1. */
  | { readonly kind: 'failed'; readonly failures: number };

/** Shortest pause between two runs. */
export const LOGIN_PAUSE_MIN_MS = 1_000;
/** Longest pause after a failure. */
export const LOGIN_RETRY_MAX_MS = 60_000;
/** Part of a lifetime after which the next credential is asked for: what is left is the time to try again in. */
export const LOGIN_REFRESH_AT = 0.75;

/** Time until a login's program runs again, in `ms`: before the credential ends, at the latest after `everyMs`, and after a failure ever more seldom. */
export function refreshDelay(state: LoginState): number {
  if (state.kind === 'failed') return Math.min(LOGIN_RETRY_MAX_MS, LOGIN_PAUSE_MIN_MS * 2 ** Math.min(state.failures - 1, 16));
  const early = state.lifetimeMs === null ? state.everyMs : state.lifetimeMs * LOGIN_REFRESH_AT;
  return Math.max(LOGIN_PAUSE_MIN_MS, Math.min(state.everyMs, early));
}
