import { CaptureError } from '../capture-error.ts';
import { type NameStatus, parseNameStatus } from './parse-name-status.ts';
import { type DiffStat, parseNumstat, sumStats } from './parse-numstat.ts';

/** Bytes of a patch that are kept: 4 MiB. */
export const MAX_PATCH_BYTES = 4 * 1024 * 1024;
/** Changed paths that are kept. */
export const MAX_CAPTURED_PATHS = 500;
/** Characters of a reason that are kept, from both ends. */
export const MAX_DIFF_ERROR_CHARS = 300;

/** What one git command gave: its output, or why there is none. */
export type CommandOutput = { readonly ok: true; readonly bytes: Uint8Array } | { readonly ok: false; readonly error: string };

/** The three readings of one diff, all against the same base. */
export interface DiffReadings {
  readonly patch: CommandOutput;
  readonly nameStatus: CommandOutput;
  readonly numstat: CommandOutput;
}

/** What could not be computed, and why. */
export interface DiffError {
  readonly what: 'patch' | 'name_status' | 'numstat';
  readonly why: string;
}

/** A diff as it is recorded. */
export interface DiffRecord {
  /** The head of the patch, at most {@link MAX_PATCH_BYTES}; absent when it could not be computed. */
  readonly patch?: Uint8Array;
  readonly truncated: boolean;
  /** Size of the whole patch. */
  readonly patchBytes: number;
  readonly files: readonly NameStatus[];
  readonly filesTruncated: boolean;
  readonly fileCount: number;
  readonly stat?: DiffStat;
  readonly errors: readonly DiffError[];
  /** True only when all of it was computed and there is no change; a failed diff is never empty. */
  readonly isEmpty: boolean;
  /** False when a part is missing though there is a change. */
  readonly isComplete: boolean;
}

/** Composes the record of a diff. Failed readings and listings that do not parse become errors, never "no change". */
export function recordDiff(readings: DiffReadings): DiffRecord {
  const errors: DiffError[] = [];
  const patch = reading(readings.patch, 'patch', errors, (bytes) => bytes);
  const files = reading(readings.nameStatus, 'name_status', errors, parseNameStatus);
  const stat = reading(readings.numstat, 'numstat', errors, (bytes) => sumStats(parseNumstat(bytes)));
  const nothingSeen = (patch?.length ?? 0) === 0 && (files?.length ?? 0) === 0 && (stat?.files ?? 0) === 0;
  return {
    ...(patch === undefined ? {} : { patch: patch.slice(0, MAX_PATCH_BYTES) }),
    truncated: (patch?.length ?? 0) > MAX_PATCH_BYTES,
    patchBytes: patch?.length ?? 0,
    files: (files ?? []).slice(0, MAX_CAPTURED_PATHS),
    filesTruncated: (files?.length ?? 0) > MAX_CAPTURED_PATHS,
    fileCount: files?.length ?? 0,
    ...(stat === undefined ? {} : { stat }),
    errors,
    isEmpty: errors.length === 0 && nothingSeen,
    isComplete: errors.length === 0,
  };
}

/** A text cut to at most `max` characters with both ends kept, since git prints the reason last. */
export function clampBothEnds(text: string, max: number = MAX_DIFF_ERROR_CHARS): string {
  if (text.length <= max) return text;
  const mark = ' ... ';
  const head = Math.ceil((max - mark.length) / 2);
  return `${text.slice(0, head)}${mark}${text.slice(text.length - (max - mark.length - head))}`;
}

function reading<Value>(
  output: CommandOutput,
  what: DiffError['what'],
  errors: DiffError[],
  parse: (bytes: Uint8Array) => Value,
): Value | undefined {
  if (!output.ok) {
    errors.push({ what, why: clampBothEnds(output.error) });
    return undefined;
  }
  try {
    return parse(output.bytes);
  } catch (error) {
    if (!(error instanceof CaptureError)) throw error;
    errors.push({ what, why: clampBothEnds(error.message) });
    return undefined;
  }
}
