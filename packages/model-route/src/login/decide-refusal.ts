/** Shortest time between the beginnings of two runs of a login's program where a refusal asks for the second, in `ms`: no operator can ask for more by the clock. */
export const LOGIN_REFUSED_PAUSE_MS = 10_000;
/** Refused credentials of one login that are remembered. */
export const LOGIN_REFUSED_MAX = 64;

/** What is known of a credential of a login that a provider refused. */
export interface RefusedCredential {
  /** It is the newest one. */
  readonly isPresent: boolean;
  /** A refusal of it was answered already. */
  readonly isKnown: boolean;
  /** Since the program began its newest run, in `ms`. */
  readonly sinceRunMs: number;
}

/** Whether a refusal runs the program of its login again, and in how many `ms`. */
export type RefusalDecision =
  | { readonly verdict: 'ignored'; readonly reason: 'replaced' | 'known' }
  | { readonly verdict: 'run'; readonly delayMs: number };

/** Decides what a refusal does: one run at most for each credential, for the newest one alone, and never soon after the run before. */
export function decideRefusal({ isPresent, isKnown, sinceRunMs }: RefusedCredential): RefusalDecision {
  if (!isPresent) return { verdict: 'ignored', reason: 'replaced' };
  if (isKnown) return { verdict: 'ignored', reason: 'known' };
  return { verdict: 'run', delayMs: Math.max(0, LOGIN_REFUSED_PAUSE_MS - sinceRunMs) };
}
