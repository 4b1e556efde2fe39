import { lstat, realpath } from 'node:fs/promises';
import { CodedError, codeOf } from '@firecrew/base';
import { isCommitId } from '@firecrew/delivery';
import { readUserSettings, type UserSettings } from './read-user-settings.ts';
import { GIT_LOCAL_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, type GitOptions, runGit } from './run-git.ts';

/** A person's repository, as it stands. */
export interface LocalRepository {
  /** Top of the working tree, absolute, links resolved. */
  readonly root: string;
  /** Of this working tree, and of all working trees of the repository. */
  readonly gitDir: string;
  readonly commonDir: string;
  readonly objectDirectory: string;
  readonly objectFormat: 'sha1' | 'sha256';
  /** The commit HEAD stands on. */
  readonly head: string;
  /** Undefined while HEAD is detached. */
  readonly branch: string | undefined;
  readonly detached: boolean;
  readonly shallow: boolean;
  /** Objects are left at a remote: no whole pack can be made. */
  readonly partial: boolean;
  readonly sparse: boolean;
  readonly settings: UserSettings;
}

const LIMITS = { timeoutMs: GIT_LOCAL_TIMEOUT_MS, maxOutputBytes: GIT_SMALL_OUTPUT_BYTES } as const;

async function ask(
  args: readonly string[],
  place: Pick<GitOptions, 'cwd' | 'gitDir'>,
  config: GitOptions['config'] = [],
): Promise<string | undefined> {
  const answer = await runGit(args, { ...place, config, ...LIMITS, exitCodes: [0, 1, 128] });
  // Only the last line end is git's: a path may end in a blank.
  return answer.exitCode === 0 ? answer.stdout.toString('utf8').replace(/\n$/, '') : undefined;
}

/**
 * Reads where a repository lies and what HEAD is, without running anything that it or its owner configured.
 * `env` is the person's environment, for their ignore file and line-ending settings.
 * Throws CodedError `repo_not_found`, `repo_not_git`, `repo_bare`, `repo_worktree_elsewhere`, `repo_unborn`.
 */
export async function inspectRepository(path: string, env: Readonly<Record<string, string | undefined>>): Promise<LocalRepository> {
  const cwd = await existingFolder(path);
  const found = await locate(cwd, path);
  const settings = await readUserSettings(found, env);
  const head = await ask(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}'], { gitDir: found.gitDir });
  if (head === undefined || !isCommitId(head)) {
    throw new CodedError('repo_unborn', `${found.root} has no commit yet`, { id: path, action: 'Make a first commit.' });
  }
  const ref = await ask(['symbolic-ref', '--quiet', 'HEAD'], { gitDir: found.gitDir });
  const branch = ref?.startsWith('refs/heads/') === true ? ref.slice('refs/heads/'.length) : undefined;
  const { partial, sparse } = settings;
  return { ...found, head, branch, detached: branch === undefined, partial, sparse, settings };
}

async function existingFolder(path: string): Promise<string> {
  try {
    const real = await realpath(path);
    if ((await lstat(real)).isDirectory()) return real;
  } catch (error) {
    if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error;
  }
  throw new CodedError('repo_not_found', `${path} is no folder`, { id: path, action: 'Name the folder of a git repository.' });
}

type Located = Pick<LocalRepository, 'root' | 'gitDir' | 'commonDir' | 'objectDirectory' | 'objectFormat' | 'shallow'>;

async function locate(cwd: string, path: string): Promise<Located> {
  // To find out that it is bare, one that lies open must be looked at; nothing of it is run.
  const place = await ask(['rev-parse', '--is-bare-repository', '--is-inside-work-tree'], { cwd }, [['safe.bareRepository', 'all']]);
  if (place === undefined)
    throw new CodedError('repo_not_git', `${path} is in no git repository`, {
      id: path,
      action: 'Run `git init` and make a first commit.',
    });
  const [bare, inside] = place.split('\n');
  if (bare === 'true' || inside !== 'true') {
    throw new CodedError('repo_bare', `${path} is in no working tree`, { id: path, action: 'Name the folder of a checkout.' });
  }
  const names = [
    '--show-toplevel',
    '--absolute-git-dir',
    '--git-common-dir',
    '--git-path',
    'objects',
    '--is-shallow-repository',
    '--show-object-format',
  ];
  const answer = await ask(['rev-parse', '--path-format=absolute', ...names], { cwd });
  const [root, gitDir, commonDir, objectDirectory, shallow, format] = answer?.split('\n') ?? [];
  if (
    root === undefined ||
    gitDir === undefined ||
    commonDir === undefined ||
    objectDirectory === undefined ||
    (format !== 'sha1' && format !== 'sha256')
  ) {
    throw new CodedError('repo_not_git', `${path} could not be read as a git repository`, { id: path });
  }
  if (cwd !== root && !cwd.startsWith(`${root}/`)) {
    throw new CodedError('repo_worktree_elsewhere', `the repository of ${path} has its working tree at ${root}`, {
      id: path,
      action: `Name ${root}.`,
    });
  }
  return { root, gitDir, commonDir, objectDirectory, objectFormat: format, shallow: shallow === 'true' };
}
