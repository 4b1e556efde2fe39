import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { isCommitId, isSafeBranchName } from '@firecrew/delivery';
import { type CommitTraits, describeCommit } from './describe-commit.ts';
import { textOf } from './git-records.ts';
import { askRemote, listRemoteRefs } from './push-branch.ts';
import { type ServerRemote, serverAccess } from './remote-access.ts';
import { GIT_LOCAL_TIMEOUT_MS, GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';

/** What was fetched. */
export interface FetchedBranch extends CommitTraits {
  readonly branch: string;
  readonly commit: string;
}

/** Which branch of which remote; its default branch when none is named. */
export interface FetchTask extends ServerRemote {
  readonly branch?: string;
  readonly timeoutMs?: number;
}

/**
 * Fetches one branch with its whole history.
 * Throws CodedError `remote_refused`, `remote_unreadable`, `remote_empty`, `remote_branch_missing`, `remote_shallow`.
 */
export async function fetchBranch(gitDir: string, task: FetchTask): Promise<FetchedBranch> {
  const { url, access } = serverAccess(task);
  const branch = task.branch ?? (await defaultBranch(url, access));
  const missing = (): CodedError =>
    new CodedError('remote_branch_missing', `the remote has no branch ${JSON.stringify(branch)}`, { action: 'Name a branch that exists.' });
  if (!isSafeBranchName(branch)) throw missing();
  const source = `refs/heads/${branch}`;
  const commit = (await listRemoteRefs(url, [source], access)).get(source);
  if (commit === undefined) throw missing();
  try {
    const args = ['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--no-auto-maintenance'];
    await runGit([...args, '--', url, `+${source}:refs/firecrew/source/${branch}`], {
      gitDir,
      ...access,
      timeoutMs: task.timeoutMs ?? GIT_PACK_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    });
  } catch (error) {
    if (codeOf(error) !== 'git_failed') throw error;
    throw new CodedError('remote_unreadable', `the fetch of ${branch} failed: ${messageOf(error)}`, { id: url, cause: error });
  }
  const fetched = await resolveRef(gitDir, `refs/firecrew/source/${branch}`);
  // Git leaves out, without failing, a branch whose history the remote itself does not have.
  if (fetched === undefined) {
    throw new CodedError('remote_shallow', `the remote holds branch ${branch} without its whole history`, {
      action: 'Use a remote that is not a shallow clone.',
    });
  }
  return { branch, commit: fetched, ...(await describeCommit(gitDir, fetched)) };
}

async function defaultBranch(url: string, access: Parameters<typeof askRemote>[2]): Promise<string> {
  const answer = textOf(await askRemote(['ls-remote', '--symref', '--', url, 'HEAD'], url, access));
  const named = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(answer)?.[1];
  if (named !== undefined) return named;
  throw new CodedError('remote_empty', 'the remote has no default branch', { id: url, action: 'Push a first commit, or name a branch.' });
}

/** The commit a ref of a repository of ours names, or undefined. */
export async function resolveRef(gitDir: string, ref: string): Promise<string | undefined> {
  const limits = { timeoutMs: GIT_LOCAL_TIMEOUT_MS, maxOutputBytes: GIT_SMALL_OUTPUT_BYTES };
  const found = await runGit(['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`], {
    gitDir,
    ...limits,
    exitCodes: [0, 1, 128],
  });
  const name = textOf(found.stdout).split('\n').at(-1) ?? '';
  return found.exitCode === 0 && isCommitId(name) ? name : undefined;
}
