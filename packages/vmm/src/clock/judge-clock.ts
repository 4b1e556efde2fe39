/** Difference between the clocks of host and guest that is left alone, in `ms`. */
export const CLOCK_BOUND_MS = 2000;
/** Longest time between question and answer, in `ms`, for which the answer says something: the host may have slept in between. */
export const MAX_CLOCK_TRIP_MS = 10_000;

/** One look at the clock of a guest, all in `ms` since 1970: the host's when it asked and when it was answered, and the guest's in between. */
export interface ClockLook {
  readonly askedMs: number;
  readonly guestMs: number;
  readonly answeredMs: number;
}

/**
 * What is to be done about the clock of a guest.
 * - `near`: nothing, as far as can be told.
 * - `unsure`: nothing now; the answer took too long, or the host's own clock was set meanwhile.
 * - `step`: `addMs` is to be added to it.
 */
export type ClockVerdict = { readonly verdict: 'near' | 'unsure' } | { readonly verdict: 'step'; readonly addMs: number };

/** Judges one look. The guest's clock was read at any time of the trip, so half of that is allowed for beside the bound. */
export function judgeClock({ askedMs, guestMs, answeredMs }: ClockLook): ClockVerdict {
  const tripMs = answeredMs - askedMs;
  if (tripMs < 0 || tripMs > MAX_CLOCK_TRIP_MS) return { verdict: 'unsure' };
  const addMs = Math.round(askedMs + tripMs / 2 - guestMs);
  return Math.abs(addMs) <= CLOCK_BOUND_MS + tripMs / 2 ? { verdict: 'near' } : { verdict: 'step', addMs };
}
