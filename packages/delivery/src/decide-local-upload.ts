import { isSecretShaped, type SecretReason } from './is-secret-shaped.ts';

/** Where a file of the caller's tree stands: as in HEAD, changed since, never committed, or ignored. */
export type FileStanding = 'committed' | 'changed' | 'untracked' | 'ignored';
export type LeftOutReason = 'ignored' | 'secret_shaped';

/** What the caller asked for by name. */
export interface FileUploadInput {
  readonly path: string | Uint8Array;
  readonly standing: FileStanding;
  /** Named by `--include`. */
  readonly included: boolean;
  /** Named by `--include-secret`. */
  readonly secretIncluded: boolean;
}

/** Whether one file travels, and what it looks like when that matters to the record. */
export type FileUploadDecision =
  | { readonly verdict: 'upload'; readonly secret?: SecretReason }
  | { readonly verdict: 'leave_out'; readonly reason: LeftOutReason; readonly secret?: SecretReason };

/**
 * Whether a file leaves the caller's machine. Ignored files travel only when included, secret-shaped ones only when included as such (which covers
 * being ignored). One that is committed as it is travels, since it is part of the history that does; the record names it.
 */
export function decideFileUpload(input: FileUploadInput): FileUploadDecision {
  const secret = isSecretShaped(input.path);
  const named = secret === undefined ? {} : { secret };
  if (secret !== undefined && !input.secretIncluded && input.standing !== 'committed')
    return { verdict: 'leave_out', reason: 'secret_shaped', ...named };
  if (input.standing === 'ignored' && !input.included && !input.secretIncluded)
    return { verdict: 'leave_out', reason: 'ignored', ...named };
  return { verdict: 'upload', ...named };
}

/** What was found in the caller's repository, and the flags that bear on it. */
export interface LocalUploadInput {
  readonly unborn: boolean;
  /** Files that differ from HEAD and travel. */
  readonly dirtyPaths: number;
  /** The tree uses a large-file filter whose content is not here. */
  readonly lfs: boolean;
  readonly partial: boolean;
  readonly requireClean: boolean;
  readonly push: boolean;
  readonly pushDirty: boolean;
}

export type LocalUploadRefusal = 'repo_unborn' | 'repo_partial' | 'tree_dirty' | 'push_needs_push_dirty';
export type LocalUploadNote = 'synthetic_base' | 'large_files_as_checked_out';

/** What the mission starts from: HEAD, or a commit made of the caller's uncommitted changes. */
export type LocalUploadDecision =
  | { readonly verdict: 'upload'; readonly base: 'head' | 'synthetic'; readonly notes: readonly LocalUploadNote[] }
  | { readonly verdict: 'refused'; readonly reason: LocalUploadRefusal; readonly rule: string };

/** Whether a mission may start from the caller's repository as it is, and from which base. */
export function decideLocalUpload(input: LocalUploadInput): LocalUploadDecision {
  const refuse = (reason: LocalUploadRefusal, rule: string): LocalUploadDecision => ({ verdict: 'refused', reason, rule });
  if (input.unborn) return refuse('repo_unborn', 'a mission starts from a commit');
  if (input.partial) return refuse('repo_partial', 'a pack is made of objects that are there');
  const dirty = input.dirtyPaths > 0;
  if (dirty && input.requireClean) return refuse('tree_dirty', '--require-clean');
  if (dirty && input.push && !input.pushDirty) return refuse('push_needs_push_dirty', 'a push of uncommitted changes is asked for by name');
  const notes: LocalUploadNote[] = [];
  if (dirty) notes.push('synthetic_base');
  if (input.lfs) notes.push('large_files_as_checked_out');
  return { verdict: 'upload', base: dirty ? 'synthetic' : 'head', notes };
}
