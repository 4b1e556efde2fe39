import { HOOK_LOG_MAX_BYTES } from './limits.ts';
import { isRecord, parseJson } from './parse-json.ts';

/**
 * How the last stop went. `blocked` = refused and never let go since; `capped` = let go by giving up; `not_called` = the hook came to no
 * end; `unreadable` = log or mark could not be read or contradict each other, which tells nothing and is never a pass.
 */
export type HookVerdict = 'passed' | 'blocked' | 'capped' | 'not_called' | 'unreadable';

/** What the guest's hook says of itself; reported, never a verdict of the gate. */
export interface HookOutcome {
  readonly verdict: HookVerdict;
  /** `absent` = no log was found, which tells nothing; `empty` = the hook was never called to an end. */
  readonly log: 'absent' | 'unreadable' | 'empty' | 'read';
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
const NOTHING = { blocks: 0, passes: 0, skippedLines: 0, truncated: false } as const;

/** One line of the log; undefined for any other text. */
type Entry =
  | { readonly event: 'pass' }
  | { readonly event: 'block' | 'cap'; readonly reason: HookReason; readonly exit: number | undefined };

/**
 * Reads the hook's log and mark as they were drained from the guest; hostile bytes cost only their own line. Undefined is a file that is
 * not there, `unreadable` one that could not be read.
 */
export function readHookOutcome(drained: {
  readonly log: Uint8Array | 'unreadable' | undefined;
  readonly capped: boolean | 'unreadable';
}): HookOutcome {
  const { log } = drained;
  const capped = drained.capped === true;
  const unknownMark = drained.capped === 'unreadable';
  if (log === 'unreadable') return { verdict: capped ? 'capped' : 'unreadable', log, capped, ...NOTHING };
  if (log === undefined)
    return { verdict: capped ? 'capped' : unknownMark ? 'unreadable' : 'not_called', log: 'absent', capped, ...NOTHING };
  const truncated = log.length > HOOK_LOG_MAX_BYTES;
  const lines = new TextDecoder().decode(log.subarray(0, HOOK_LOG_MAX_BYTES)).split('\n');
  const entries = lines.filter((line) => line.trim() !== '').map(parseEntry);
  const refused = entries.flatMap((entry) => (entry === undefined || entry.event === 'pass' ? [] : [entry]));
  const last = refused.at(-1);
  return {
    verdict: capped ? 'capped' : unknownMark || truncated ? 'unreadable' : verdictOf(entries),
    log: log.length === 0 ? 'empty' : 'read',
    blocks: refused.filter((entry) => entry.event === 'block').length,
    passes: entries.filter((entry) => entry?.event === 'pass').length,
    capped,
    ...(last === undefined ? {} : { lastReason: last.reason }),
    ...(last?.exit === undefined ? {} : { lastExit: last.exit }),
    skippedLines: entries.filter((entry) => entry === undefined).length,
    truncated,
  };
}

/** By the last line alone. One that says "gave up" without the mark contradicts it. */
function verdictOf(entries: readonly (Entry | undefined)[]): HookVerdict {
  if (entries.length === 0) return 'not_called';
  const event = entries.at(-1)?.event;
  if (event === 'pass') return 'passed';
  return event === 'block' ? 'blocked' : 'unreadable';
}

function parseEntry(line: string): Entry | undefined {
  const entry = parseJson(line);
  if (!isRecord(entry)) return undefined;
  if (entry.event === 'pass') return { event: 'pass' };
  const reason = REASONS.find((known) => known === entry.reason);
  if ((entry.event !== 'block' && entry.event !== 'cap') || reason === undefined) return undefined;
  const exit = typeof entry.exit === 'number' && Number.isSafeInteger(entry.exit) ? entry.exit : undefined;
  return { event: entry.event, reason, exit };
}
