import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { quotePath } from './index-pack.ts';
import type { LocalRepository } from './inspect-repository.ts';
import type { HeadPack } from './local-branches.ts';
import { checkComplete, writePack } from './move-packs.ts';
import { GIT_LOCAL_TIMEOUT_MS, GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';
import { withShadow } from './shadow-repository.ts';

/** How the history is fetched: with the person's own configuration and credentials, without prompts. */
export interface UnshallowOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

const FETCH = ['fetch', '--quiet', '--unshallow', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--no-auto-maintenance'];

/**
 * Writes HEAD of a shallow clone and its whole history to the new file `outFile`. What the clone lacks is fetched from the remote of its branch
 * into a folder of ours: nothing is written into the repository.
 * Throws CodedError `unshallow_failed` where there is no such remote, it cannot be read, or it lacks the history itself.
 */
export async function packWholeHistory(repository: LocalRepository, outFile: string, options: UnshallowOptions): Promise<HeadPack> {
  const commit = repository.head;
  const remote = await remoteOf(repository);
  const bytes = await withShadow(repository, async ({ gitDir }) => {
    await lend(gitDir, repository.objectDirectory);
    await fetchHistory(gitDir, repository, remote, options);
    // A remote that is cut itself gives what it has, and git calls that a success.
    if (await exists(join(gitDir, 'shallow'))) throw failed(remote, 'it does not have the whole history itself');
    await checkComplete(gitDir, commit).catch((cause: unknown) => {
      throw failed(remote, `it does not hold the history of ${commit}`, cause);
    });
    return await writePack({ gitDir }, commit, [], outFile);
  });
  return { commit, bytes };
}

/** The remote that the branch follows, else `origin`. */
async function remoteOf({ branch, commonDir }: LocalRepository): Promise<string> {
  if (branch === undefined) return 'origin';
  const { stdout, exitCode } = await runGit(['config', '--get', `branch.${branch}.remote`], {
    gitDir: commonDir,
    timeoutMs: GIT_LOCAL_TIMEOUT_MS,
    maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    exitCodes: [0, 1],
  });
  const name = stdout.toString('utf8').trim();
  // "." is a branch of this very repository.
  return exitCode === 0 && name !== '' && name !== '.' && !name.startsWith('-') ? name : 'origin';
}

async function lend(gitDir: string, objects: string): Promise<void> {
  await mkdir(join(gitDir, 'objects/info'), { recursive: true });
  await writeFile(join(gitDir, 'objects/info/alternates'), `${quotePath(objects)}\n`);
}

async function fetchHistory(gitDir: string, repository: LocalRepository, remote: string, options: UnshallowOptions): Promise<void> {
  // Where the remote is, and how it is reached, is the person's configuration; the folder of ours has none.
  const config = [['include.path', join(repository.commonDir, 'config')]] as const;
  try {
    await runGit([...FETCH, '--', remote, '+refs/heads/*:refs/firecrew/history/*'], {
      gitDir,
      cwd: repository.root,
      config,
      userEnv: options.env,
      timeoutMs: options.timeoutMs ?? GIT_PACK_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  } catch (error) {
    if (!['git_failed', 'git_timed_out'].includes(codeOf(error) ?? '')) throw error;
    throw failed(remote, messageOf(error), error);
  }
}

async function exists(file: string): Promise<boolean> {
  return await stat(file).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === 'ENOENT') return false;
      throw error;
    },
  );
}

function failed(remote: string, why: string, cause?: unknown): CodedError {
  return new CodedError('unshallow_failed', `the history could not be fetched from ${remote}: ${why}`, {
    id: remote,
    action: 'Run `git fetch --unshallow` yourself, or leave out --unshallow: the short history travels then.',
    cause,
  });
}
