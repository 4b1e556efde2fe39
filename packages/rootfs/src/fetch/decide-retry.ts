/** Tries in a row before a series ends. */
export const MAX_FETCH_TRIES = 8;
/** Pause after the first failed try, in `ms`; it doubles with each further one. */
export const FETCH_PAUSE_MIN_MS = 1_000;
export const FETCH_PAUSE_MAX_MS = 60_000;
/** Pause before a new series of tries, in `ms`. */
export const FETCH_REST_MS = 600_000;
/** Pause before a server is asked again for what it did not have, in `ms`. */
export const FETCH_ABSENT_MS = 60_000;
/** New bytes that a broken try must have brought to count as progress: tries that bring them are bounded by the size of what is fetched. */
export const FETCH_PROGRESS_BYTES = 1024 * 1024;

/** How the fetching of one artifact has gone so far. */
export interface FetchState {
  /** Broken tries in a row without progress. */
  readonly failures: number;
  /** Refused tries; progress in between does not make them fewer. */
  readonly refusals: number;
  /** When it is tried again, in `ms` of the caller's clock; null with the next link to the server alone. */
  readonly dueMs: number | null;
}

/** Something that was never tried. */
export const NOT_TRIED: FetchState = { failures: 0, refusals: 0, dueMs: 0 };

/**
 * What kind of failure a code is: `absent` (the server does not have it, which an operator may change at any time), `refused` (what it sent
 * is not what it promised, and asking again the same way hardly helps), or `broken` (connection, disk, server: may be better next time).
 */
export type FetchFault = 'absent' | 'refused' | 'broken';

const FAULTS: Readonly<Record<string, FetchFault>> = {
  image_not_offered: 'absent',
  image_digest_wrong: 'refused',
  manifest_malformed: 'refused',
  image_kind_wrong: 'refused',
  image_architecture_wrong: 'refused',
  image_length_wrong: 'refused',
  image_answer_wrong: 'refused',
  image_redirected: 'refused',
};

/** The kind of a failure by its code; what has none, or one that is not listed, is `broken`. */
export function faultOf(code: string | undefined): FetchFault {
  return FAULTS[code ?? ''] ?? 'broken';
}

/** What is known of a failed try. */
export interface FailedTry {
  readonly fault: FetchFault;
  /** Bytes that were kept of it and had not been there before. */
  readonly newBytes: number;
  readonly nowMs: number;
  /** At least 0 and less than 1: nodes that failed together do not come back together. */
  readonly random: number;
}

/**
 * Decides when a failed fetch is tried again. A broken one rests after {@link MAX_FETCH_TRIES} tries without progress and begins a new series;
 * a refused one ends after as many until the link to the server is made anew; what is absent is asked for at a steady pace.
 */
export function decideRetry(state: FetchState, { fault, newBytes, nowMs, random }: FailedTry): FetchState {
  const { failures, refusals } = state;
  const pauseMs = (tries: number): number =>
    Math.round(Math.min(FETCH_PAUSE_MIN_MS * 2 ** (tries - 1), FETCH_PAUSE_MAX_MS) * (0.5 + random / 2));
  switch (fault) {
    case 'absent':
      return { failures: 0, refusals, dueMs: nowMs + FETCH_ABSENT_MS };
    case 'refused': {
      const tries = refusals + 1;
      return { failures, refusals: tries, dueMs: tries < MAX_FETCH_TRIES ? nowMs + pauseMs(tries) : null };
    }
    case 'broken': {
      const tries = newBytes >= FETCH_PROGRESS_BYTES ? 1 : failures + 1;
      if (tries < MAX_FETCH_TRIES) return { failures: tries, refusals, dueMs: nowMs + pauseMs(tries) };
      return { failures: 0, refusals, dueMs: nowMs + FETCH_REST_MS };
    }
  }
}
