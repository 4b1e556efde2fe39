import { byteKey } from '../bytes.ts';

/** Names of folders that may be left out: build output, dependencies, virtual environments, caches. */
export const EXCLUDABLE_NAMES = ['node_modules', 'target', '.venv', 'venv', '__pycache__', '.cache', 'dist', 'build'] as const;
/** Those of them that are left out without the repository's ignore rules saying so. */
export const HARD_EXCLUDED_NAMES = ['node_modules', '.venv', 'venv', '__pycache__', '.cache'] as const;

/** What is known of a folder. */
export interface FolderFacts {
  /** Its own name, not its path. */
  readonly name: Uint8Array;
  /** A path at or below it is tracked at the base. */
  readonly holdsTracked: boolean;
  /** The ignore rules of the base ignore it. */
  readonly isIgnored: boolean;
}

/** Whether a folder travels; `warn` when it is left out and the repository did not ask for that. */
export type ExclusionVerdict =
  | { readonly verdict: 'keep'; readonly rule: 'name_not_listed' | 'holds_tracked' | 'not_ignored' }
  | { readonly verdict: 'leave_out'; readonly rule: 'ignored' | 'hard_list'; readonly warn: boolean };

const excludable: readonly string[] = EXCLUDABLE_NAMES;
const hardExcluded: readonly string[] = HARD_EXCLUDED_NAMES;

/**
 * The one exclusion rule for transport, diff, capture and check copies: a folder is left out only if its name is listed,
 * it holds nothing tracked, and it is ignored or on the hard list.
 */
export function decideExclusion(folder: FolderFacts): ExclusionVerdict {
  const name = byteKey(folder.name);
  if (!excludable.includes(name)) return { verdict: 'keep', rule: 'name_not_listed' };
  if (folder.holdsTracked) return { verdict: 'keep', rule: 'holds_tracked' };
  if (folder.isIgnored) return { verdict: 'leave_out', rule: 'ignored', warn: false };
  if (hardExcluded.includes(name)) return { verdict: 'leave_out', rule: 'hard_list', warn: true };
  return { verdict: 'keep', rule: 'not_ignored' };
}
