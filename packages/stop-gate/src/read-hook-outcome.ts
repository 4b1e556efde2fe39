import { HOOK_LOG_MAX_BYTES } from './limits.ts';
import { isRecord, parseJson } from './parse-json.ts';

/** What the guest's hook says of itself; reported, never a verdict. */
export interface HookOutcome {
  /** `absent` = no log was found, which tells nothing; `empty` = the hook was never called to an end. */
  readonly log: 'absent' | 'empty' | 'read';
  readonly blocks: number;
  readonly passes: number;
  /** The separate mark of giving up; a count cannot tell "passed at the fourth try" from it. */
  readonly capped: boolean;
  readonly lastReason?: HookReason;
  /** Exit status of the last refused check. */
  readonly lastExit?: number;
  /** Lines that could not be read, a torn last one included. */
  readonly skippedLines: number;
  /** The log was longer than {@link HOOK_LOG_MAX_BYTES}; its head was read. */
  readonly truncated: boolean;
}

/** Reasons the hook gives; closed. */
export type HookReason = 'no_change' | 'change_unknown' | 'check_failed' | 'check_timed_out';

const REASONS: readonly HookReason[] = ['no_change', 'change_unknown', 'check_failed', 'check_timed_out'];

/** Reads the hook's log and mark as they were drained from the guest; hostile bytes cost only their own line. */
export function readHookOutcome(drained: { readonly log: Uint8Array | undefined; readonly capped: boolean }): HookOutcome {
  const { log, capped } = drained;
  if (log === undefined) return { log: 'absent', blocks: 0, passes: 0, capped, skippedLines: 0, truncated: false };
  const text = new TextDecoder().decode(log.subarray(0, HOOK_LOG_MAX_BYTES));
  let blocks = 0;
  let passes = 0;
  let skippedLines = 0;
  let last: { reason: HookReason; exit: number | undefined } | undefined;
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const entry = parseJson(line);
    const reason = isRecord(entry) ? REASONS.find((known) => known === entry.reason) : undefined;
    if (isRecord(entry) && entry.event === 'pass') passes += 1;
    else if (isRecord(entry) && (entry.event === 'block' || entry.event === 'cap') && reason !== undefined) {
      if (entry.event === 'block') blocks += 1;
      last = { reason, exit: Number.isSafeInteger(entry.exit) ? Number(entry.exit) : undefined };
    } else skippedLines += 1;
  }
  return {
    log: log.length === 0 ? 'empty' : 'read',
    blocks,
    passes,
    capped,
    ...(last === undefined ? {} : { lastReason: last.reason }),
    ...(last?.exit === undefined ? {} : { lastExit: last.exit }),
    skippedLines,
    truncated: log.length > HOOK_LOG_MAX_BYTES,
  };
}
