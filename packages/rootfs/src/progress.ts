/** How far long work is. */
export interface Progress {
  /** What is done now, as a person reads it: `reading layer 2 of 5`. */
  readonly step: string;
  /** Part of the step that is done, 0 to 1; undefined where it is not known. */
  readonly fraction?: number | undefined;
}

/** Told now and then; never often enough to slow the work down. */
export type OnProgress = (progress: Progress) => void;
