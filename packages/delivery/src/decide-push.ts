import { isSafeBranchName, nameDivergedBranch } from './name-branch.ts';

/** What the remote holds, read with `ls-remote` before every push. */
export interface PushInput {
  readonly branch: string;
  /** Full id of the commit to deliver. */
  readonly ourSha: string;
  /** Tip of `branch` on the remote; undefined = there is none (the remote was read, and said so). */
  readonly lsRemoteSha: string | undefined;
  /** Whether the remote's tip is an ancestor of ours; undefined = its commit is not known here. */
  readonly remoteIsAncestor?: boolean | undefined;
  /** Tip of the suffixed branch on the remote. */
  readonly lsRemoteSuffixedSha?: string | undefined;
}

/** `create`: push only if the branch is absent. `fast_forward`: push without force. `nothing`: it is there already. */
export type PushAction = 'create' | 'fast_forward' | 'nothing' | 'refuse';
export type PushDecisionReason =
  | 'absent'
  | 'already_there'
  | 'behind'
  | 'diverged'
  | 'diverged_already_there'
  | 'diverged_name_taken'
  | 'invalid_branch';

/** The push to make, if any, and the branch that then holds the work. */
export interface PushDecision {
  readonly action: PushAction;
  readonly branch: string;
  readonly reason: PushDecisionReason;
  /** True when `branch` is the suffixed one. */
  readonly redirected: boolean;
}

/** Where our commit goes, so that a push repeated after a crash ends in the same one branch. Throws `invalid_commit_id`. */
export function decidePush(input: PushInput): PushDecision {
  const { branch, ourSha } = input;
  const here = (action: PushAction, reason: PushDecisionReason): PushDecision => ({ action, branch, reason, redirected: false });
  if (!isSafeBranchName(branch)) return here('refuse', 'invalid_branch');
  const suffixed = nameDivergedBranch(branch, ourSha);
  const there = (action: PushAction, reason: PushDecisionReason): PushDecision => ({ action, branch: suffixed, reason, redirected: true });
  if (input.lsRemoteSha === ourSha) return here('nothing', 'already_there');
  // Asked before `absent`: the push before the crash was redirected, and the first branch may be gone by now.
  if (input.lsRemoteSuffixedSha === ourSha) return there('nothing', 'diverged_already_there');
  if (input.lsRemoteSha === undefined) return here('create', 'absent');
  if (input.remoteIsAncestor === true) return here('fast_forward', 'behind');
  if (input.lsRemoteSuffixedSha === undefined) return there('create', 'diverged');
  return there('refuse', 'diverged_name_taken');
}

/** The decision after git answered `[rejected]`, or a changed lease: the suffixed branch, unless that is what was pushed. */
export function decideAfterRejection(first: PushDecision, ourSha: string): PushDecision {
  if (first.redirected) return { ...first, action: 'refuse', reason: 'diverged_name_taken' };
  return { action: 'create', branch: nameDivergedBranch(first.branch, ourSha), reason: 'diverged', redirected: true };
}
