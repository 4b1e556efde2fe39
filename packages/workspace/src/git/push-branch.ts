import { CodedError, codeOf, messageOf } from '@firecrew/base';
import {
  decideAfterRejection,
  decidePush,
  isCommitId,
  nameDivergedBranch,
  type PushDecision,
  type PushResult,
  parsePush,
} from '@firecrew/delivery';
import { textOf } from './git-records.ts';
import { isAncestor } from './move-packs.ts';
import { GIT_PACK_TIMEOUT_MS, GIT_REMOTE_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, type GitOptions, runGit } from './run-git.ts';

/** How often the remote is compared and pushed to before a delivery gives up. */
export const MAX_PUSH_TRIES = 3;

/** What a push came to. `redirected` work lies on `branch`, a name of its own. */
export interface PushOutcome {
  readonly verdict: 'pushed' | 'up_to_date' | 'refused' | 'unreadable';
  readonly branch: string;
  readonly redirected: boolean;
  /** Of `parsePush`, of `decidePush`, or `remote_unreadable`. */
  readonly reason: string;
  /** The status git printed for the branch, unchanged. */
  readonly detail: string;
  /** What the remote and git said beside it, redacted. */
  readonly remoteText: string;
}

/** How to speak to one remote: configuration, environment, transports. */
export type RemoteAccess = Pick<GitOptions, 'config' | 'env' | 'protocols' | 'userEnv' | 'secrets' | 'signal'>;

/** One push: which commit of which repository goes to which branch of which remote. */
export interface PushTask {
  readonly place: Pick<GitOptions, 'gitDir' | 'objectDirectory' | 'cwd'>;
  /** A URL, a path, or (with the person's configuration) the name of a remote. */
  readonly remote: string;
  readonly branch: string;
  readonly commit: string;
  readonly access: RemoteAccess;
  readonly timeoutMs?: number;
}

/**
 * Compares with the remote, pushes without force, and goes to a branch of its own name when histories diverged: repeated after a crash it ends in the
 * same one branch. A refusal of the remote is an outcome, in its own words.
 * Throws CodedError `commit_id_malformed`, `git_timed_out`, `git_cancelled`, `git_not_found`.
 */
export async function pushByComparison(task: PushTask): Promise<PushOutcome> {
  if (!isCommitId(task.commit)) throw new CodedError('commit_id_malformed', `${JSON.stringify(task.commit)} is no full commit id`);
  let decision: PushDecision | undefined;
  let last: { result: PushResult; remoteText: string } | undefined;
  for (let attempt = 0; attempt < MAX_PUSH_TRIES; attempt += 1) {
    const compared = await compare(task);
    if ('verdict' in compared) return last === undefined ? compared : outcome(last.result, decision ?? compared, last.remoteText);
    decision =
      last?.result.verdict === 'diverged' && !compared.redirected && compared.action !== 'nothing'
        ? decideAfterRejection(compared, task.commit)
        : compared;
    if (decision.action === 'nothing') return settled(decision, last?.remoteText ?? '');
    if (decision.action === 'refuse') return { ...settled(decision, last?.remoteText ?? ''), verdict: 'refused' };
    last = await pushOnce(task, decision);
    if (last.result.verdict === 'pushed' || last.result.verdict === 'up_to_date') break;
    const again = last.result.verdict === 'diverged' || last.result.reason === 'stale_info' || last.result.verdict === 'unreadable';
    if (!again) break;
  }
  if (last === undefined || decision === undefined) throw new CodedError('push_without_result', `the push of ${task.commit} has no result`);
  return outcome(last.result, decision, last.remoteText);
}

function outcome(result: PushResult, decision: { branch: string; redirected: boolean }, remoteText: string): PushOutcome {
  const verdict = result.verdict === 'diverged' ? 'refused' : result.verdict;
  return { verdict, branch: decision.branch, redirected: decision.redirected, reason: result.reason, detail: result.detail, remoteText };
}

function settled(decision: PushDecision, remoteText: string): PushOutcome {
  return {
    verdict: 'up_to_date',
    branch: decision.branch,
    redirected: decision.redirected,
    reason: decision.reason,
    detail: '',
    remoteText,
  };
}

async function compare(task: PushTask): Promise<PushDecision | PushOutcome> {
  const { branch, commit } = task;
  const first = decidePush({ branch, ourSha: commit, lsRemoteSha: undefined });
  if (first.action === 'refuse') return { ...settled(first, ''), verdict: 'refused' };
  const suffixed = nameDivergedBranch(branch, commit);
  let heads: ReadonlyMap<string, string>;
  try {
    heads = await listRemoteRefs(task.remote, [`refs/heads/${branch}`, `refs/heads/${suffixed}`], task.access, task.place);
  } catch (error) {
    if (codeOf(error) !== 'remote_unreadable') throw error;
    return { verdict: 'unreadable', branch, redirected: false, reason: 'remote_unreadable', detail: '', remoteText: messageOf(error) };
  }
  const lsRemoteSha = heads.get(`refs/heads/${branch}`);
  const remoteIsAncestor = lsRemoteSha === undefined ? undefined : await isAncestor(task.place, lsRemoteSha, commit);
  return decidePush({ branch, ourSha: commit, lsRemoteSha, remoteIsAncestor, lsRemoteSuffixedSha: heads.get(`refs/heads/${suffixed}`) });
}

async function pushOnce(task: PushTask, decision: PushDecision): Promise<{ result: PushResult; remoteText: string }> {
  const ref = `refs/heads/${decision.branch}`;
  // An empty lease: the branch is made only if it is not there.
  const lease = decision.action === 'create' ? [`--force-with-lease=${ref}:`] : [];
  const args = ['push', '--porcelain', '--no-verify', '--no-follow-tags', '--no-signed', '--recurse-submodules=no', ...lease];
  const answer = await runGit([...args, '--', task.remote, `${task.commit}:${ref}`], {
    ...task.place,
    ...task.access,
    timeoutMs: task.timeoutMs ?? GIT_PACK_TIMEOUT_MS,
    maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    exitCodes: ANY_EXIT_CODE,
  });
  return { result: parsePush(answer.stdout, ref, answer.exitCode), remoteText: answer.stderr };
}

const ANY_EXIT_CODE = Array.from({ length: 256 }, (_, code) => code);

/** The refs of `remote` with exactly these full names. Throws CodedError `remote_unreadable` when the remote gives no list. */
export async function listRemoteRefs(
  remote: string,
  refs: readonly string[],
  access: RemoteAccess,
  place: PushTask['place'] = {},
): Promise<ReadonlyMap<string, string>> {
  const answer = await askRemote(['ls-remote', '--refs', '--', remote, ...refs], remote, access, place);
  const found = new Map<string, string>();
  for (const line of textOf(answer).split('\n')) {
    const [sha, ref] = line.split('\t');
    if (sha !== undefined && ref !== undefined && isCommitId(sha) && refs.includes(ref)) found.set(ref, sha);
  }
  return found;
}

/** One question to a remote. Throws CodedError `remote_unreadable` in place of `git_failed`. */
export async function askRemote(
  args: readonly string[],
  remote: string,
  access: RemoteAccess,
  place: PushTask['place'] = {},
): Promise<Buffer> {
  try {
    const limits = { timeoutMs: GIT_REMOTE_TIMEOUT_MS, maxOutputBytes: 16 * GIT_SMALL_OUTPUT_BYTES };
    return (await runGit(args, { ...place, ...access, ...limits })).stdout;
  } catch (error) {
    if (codeOf(error) !== 'git_failed') throw error;
    throw new CodedError('remote_unreadable', `the remote gave no answer: ${messageOf(error)}`, {
      id: remote,
      action: 'Check the URL, the credential and whether the host is allowed.',
      cause: error,
    });
  }
}
