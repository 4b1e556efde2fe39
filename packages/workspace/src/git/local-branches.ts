import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { decideRemoteUrl, isCommitId, isSafeBranchName, nameDivergedBranch } from '@firecrew/delivery';
import { resolveRef } from './fetch-branch.ts';
import { indexPack } from './index-pack.ts';
import type { LocalRepository } from './inspect-repository.ts';
import { parseShallow, writePack } from './move-packs.ts';
import { type PushOutcome, pushByComparison } from './push-branch.ts';
import { GIT_LOCAL_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';
import { withShadow } from './shadow-repository.ts';

/** A pack of HEAD and its history. */
export interface HeadPack {
  readonly commit: string;
  readonly bytes: number;
  /** Where the history is cut, for a shallow source; it goes with the pack. */
  readonly shallow?: Buffer;
}

/** Writes HEAD and its history to the new file `outFile`. Throws CodedError `repo_partial`. */
export async function packHead(repository: LocalRepository, outFile: string): Promise<HeadPack> {
  if (repository.partial) {
    throw new CodedError('repo_partial', `${repository.root} is a partial clone`, {
      action: 'Run `git fetch --refetch --no-filter` in it first.',
    });
  }
  const commit = repository.head;
  const bytes = await withShadow(repository, ({ gitDir, objectDirectory }) => writePack({ gitDir, objectDirectory }, commit, [], outFile));
  if (!repository.shallow) return { commit, bytes };
  const shallow = await readFile(join(repository.commonDir, 'shallow'));
  parseShallow(shallow);
  return { commit, bytes, shallow };
}

/** What becomes a branch of a person's repository. */
export interface BranchToWrite {
  readonly packFile: string;
  readonly branch: string;
  readonly commit: string;
}

/** Where the commit lies now. */
export interface WrittenBranch {
  readonly verdict: 'written' | 'already_there';
  readonly branch: string;
  /** The wanted name held other work, which was left as it is. */
  readonly redirected: boolean;
}

/**
 * Puts a pack into a person's repository and makes a branch of it; an existing branch is never moved, nor is HEAD or the working tree touched.
 * Throws the codes of `indexPack`, CodedError `pack_incomplete`, `branch_invalid`, `branch_name_taken`, `commit_id_malformed`.
 */
export async function writeBranch(repository: LocalRepository, work: BranchToWrite): Promise<WrittenBranch> {
  const gitDir = repository.commonDir;
  const { branch, commit } = work;
  if (!isCommitId(commit)) throw new CodedError('commit_id_malformed', `${JSON.stringify(commit)} is no full commit id`);
  if (!isSafeBranchName(branch)) throw new CodedError('branch_invalid', `${JSON.stringify(branch)} is no branch name`);
  // Checked as a remote's pack would be: the content was made by a guest, and a person will check it out.
  await indexPack({ gitDir, objectDirectory: repository.objectDirectory }, work.packFile, ['--strict']);
  if ((await resolveRef(gitDir, commit)) !== commit) {
    throw new CodedError('pack_incomplete', `commit ${commit} is not in the pack that was given`, { id: commit });
  }
  for (const name of [branch, nameDivergedBranch(branch, commit)]) {
    const redirected = name !== branch;
    const there = await resolveRef(gitDir, `refs/heads/${name}`);
    if (there === commit) return { verdict: 'already_there', branch: name, redirected };
    if (there === undefined && (await createRef(gitDir, name, commit))) return { verdict: 'written', branch: name, redirected };
  }
  throw new CodedError('branch_name_taken', `no branch could be made under the name ${branch}`, {
    id: commit,
    action: `The commit is in the repository: \`git branch NAME ${commit}\`.`,
  });
}

async function createRef(gitDir: string, branch: string, commit: string): Promise<boolean> {
  const { exitCode } = await runGit(['update-ref', '-m', 'firecrew: deliver', `refs/heads/${branch}`, commit, '0'.repeat(commit.length)], {
    gitDir,
    timeoutMs: GIT_LOCAL_TIMEOUT_MS,
    maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    exitCodes: [0, 1, 128],
  });
  return exitCode === 0;
}

/** A push with a person's own means. */
export interface LocalPush {
  /** A remote's name, URL or path. */
  readonly remote: string;
  readonly branch: string;
  /** The person's environment: agent, credential helpers and configuration are used. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Pushes a branch with the person's credentials and transport configuration; hooks, file monitors and prompts are off.
 * What the remote says is an outcome. Throws CodedError `remote_refused`, `branch_invalid`, `branch_missing`.
 */
export async function pushBranch(repository: LocalRepository, push: LocalPush): Promise<PushOutcome> {
  const { remote, branch } = push;
  const decision = decideRemoteUrl({ url: remote, side: 'client' });
  // Which transports are allowed is the person's to configure; what git would not read as a remote is not.
  if (decision.verdict === 'refused' && ['empty', 'control_character', 'option_like', 'transport_helper'].includes(decision.reason)) {
    throw new CodedError('remote_refused', `the remote is refused: ${decision.reason}`, { action: `The rule is: ${decision.rule}.` });
  }
  if (!isSafeBranchName(branch)) throw new CodedError('branch_invalid', `${JSON.stringify(branch)} is no branch name`);
  const gitDir = repository.commonDir;
  const commit = await resolveRef(gitDir, `refs/heads/${branch}`);
  if (commit === undefined)
    throw new CodedError('branch_missing', `${repository.root} has no branch ${branch}`, { action: 'Run `firecrew fetch` first.' });
  const access = push.signal === undefined ? { userEnv: push.env } : { userEnv: push.env, signal: push.signal };
  const timeout = push.timeoutMs === undefined ? {} : { timeoutMs: push.timeoutMs };
  return pushByComparison({ place: { gitDir, cwd: repository.root }, remote, branch, commit, access, ...timeout });
}
