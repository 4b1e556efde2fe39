/** What a push came to for one ref. */
export type PushVerdict = 'pushed' | 'up_to_date' | 'diverged' | 'refused' | 'unreadable';

/** Why a push was refused or could not be read. `stale_info`: the branch changed since it was compared; compare again. */
export type PushReason =
  | 'new_branch'
  | 'fast_forward'
  | 'same_commit'
  | 'non_fast_forward'
  | 'remote_rejected'
  | 'stale_info'
  | 'remote_failure'
  | 'no_match'
  | 'forced_update'
  | 'no_status'
  | 'too_long'
  | 'contradiction';

/** Verdict, reason and git's own words for the ref. */
export interface PushResult {
  readonly verdict: PushVerdict;
  readonly reason: PushReason;
  /** The summary field as git printed it; empty when there was none. */
  readonly detail: string;
}

/** Most bytes of `push --porcelain` output that are read. */
export const PUSH_OUTPUT_MAX_BYTES = 256 * 1024;
/** Longest `detail`, in characters, both ends kept. */
export const PUSH_DETAIL_MAX_CHARS = 1000;

const WORST_FIRST: readonly PushVerdict[] = ['unreadable', 'refused', 'diverged', 'pushed', 'up_to_date'];

function clamp(text: string): string {
  const half = PUSH_DETAIL_MAX_CHARS / 2;
  return text.length <= PUSH_DETAIL_MAX_CHARS ? text : `${text.slice(0, half)} … ${text.slice(3 - half)}`;
}

function rejected(summary: string, detail: string): PushResult {
  // `[remote rejected]` holds the word too: only the whole bracket decides.
  if (summary.startsWith('[rejected]')) {
    return summary.includes('(stale info)')
      ? { verdict: 'refused', reason: 'stale_info', detail }
      : { verdict: 'diverged', reason: 'non_fast_forward', detail };
  }
  if (summary.startsWith('[remote rejected]')) return { verdict: 'refused', reason: 'remote_rejected', detail };
  if (summary.startsWith('[remote failure]')) return { verdict: 'refused', reason: 'remote_failure', detail };
  if (summary.startsWith('[no match]')) return { verdict: 'refused', reason: 'no_match', detail };
  return { verdict: 'unreadable', reason: 'contradiction', detail };
}

function readStatus(flag: string, summary: string): PushResult {
  const detail = clamp(summary);
  if (flag === '*') return { verdict: 'pushed', reason: 'new_branch', detail };
  if (flag === ' ') return { verdict: 'pushed', reason: 'fast_forward', detail };
  if (flag === '=') return { verdict: 'up_to_date', reason: 'same_commit', detail };
  if (flag === '!') return rejected(summary, detail);
  if (flag === '+') return { verdict: 'refused', reason: 'forced_update', detail };
  return { verdict: 'unreadable', reason: 'contradiction', detail };
}

/**
 * What `git push --porcelain` printed on its standard output for `ref` (full name, such as `refs/heads/x`).
 * Several remotes behind one name give several lines: the worst counts. No line for the ref, or a success that the exit code contradicts, is `unreadable`.
 */
export function parsePush(output: Uint8Array, ref: string, exitCode: number): PushResult {
  if (output.length > PUSH_OUTPUT_MAX_BYTES) return { verdict: 'unreadable', reason: 'too_long', detail: '' };
  const results: PushResult[] = [];
  for (const line of new TextDecoder('utf-8').decode(output).split('\n')) {
    const [flag, refs, ...rest] = line.split('\t');
    if (flag?.length !== 1 || refs === undefined || refs.slice(refs.indexOf(':') + 1) !== ref) continue;
    results.push(readStatus(flag, rest.join('\t')));
  }
  const worst = WORST_FIRST.flatMap((verdict) => results.find((result) => result.verdict === verdict) ?? [])[0];
  if (worst === undefined) return { verdict: 'unreadable', reason: 'no_status', detail: '' };
  const succeeded = worst.verdict === 'pushed' || worst.verdict === 'up_to_date';
  if (succeeded && exitCode !== 0) return { verdict: 'unreadable', reason: 'contradiction', detail: worst.detail };
  return worst;
}
