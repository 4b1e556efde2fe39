import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { decideLocalUpload, type LocalUploadRefusal } from '@firecrew/delivery';
import type { RepositorySource } from '@firecrew/protocol';
import type { FirecrewClient } from '@firecrew/sdk';
import {
  GIT_LOCAL_TIMEOUT_MS,
  GIT_SMALL_OUTPUT_BYTES,
  inspectRepository,
  type LocalRepository,
  listUploadFiles,
  packHead,
  packWholeHistory,
  runGit,
  snapshotDirectory,
  type UploadList,
} from '@firecrew/workspace';
import { UsageError } from '../exit-codes.ts';
import { cleanLine } from '../render/clean-text.ts';
import { digestOf } from './agent-files.ts';
import type { RunOptions } from './run-options.ts';

/** A person's repository with the list of what travels. */
export interface LocalTree {
  readonly repository: LocalRepository;
  readonly list: UploadList;
  readonly dirty: boolean;
  /** The history that the clone lacks is fetched. */
  readonly unshallow: boolean;
  /** What to tell the caller before anything is sent. */
  readonly notes: readonly string[];
}

type Environment = Readonly<Record<string, string | undefined>>;
const NAMED = 5;

const REFUSALS: Readonly<Record<LocalUploadRefusal, { message: string; action: string }>> = {
  repo_unborn: { message: 'the repository has no commit yet', action: 'Make a first commit.' },
  repo_partial: { message: 'the repository is a partial clone', action: 'Run `git fetch --refetch --no-filter` in it first.' },
  tree_dirty: { message: 'there are uncommitted changes', action: 'Commit or stash them, or leave out --require-clean.' },
  push_needs_push_dirty: {
    message: 'there are uncommitted changes, which a push would publish as a commit of their own',
    action: 'Commit them, or add --push-dirty.',
  },
};

/** Reads the repository at `path` and decides what of it travels. Throws `usage_wrong` for a tree that the flags refuse. */
export async function readTree(path: string, options: RunOptions, env: Environment): Promise<LocalTree> {
  const repository = await inspectRepository(path, env);
  if (repository.objectFormat !== 'sha1') {
    throw new CodedError('repo_sha256', `${repository.root} names its objects by SHA-256, which is not supported`, {
      id: repository.root,
      action: 'Use a repository with SHA-1 object names.',
    });
  }
  const list = await listUploadFiles(repository, { include: options.include, includeSecret: options.includeSecret });
  const { partial } = repository;
  const { requireClean, pushDirty } = options;
  const decision = decideLocalUpload({
    unborn: false,
    dirtyPaths: list.dirtyPaths,
    lfs: list.lfs,
    partial,
    requireClean,
    push: options.push !== undefined,
    pushDirty,
  });
  if (decision.verdict === 'refused') {
    const { message, action } = REFUSALS[decision.reason];
    // any code: it is the reason of the decision
    throw new UsageError(decision.reason, message, { id: repository.root, action });
  }
  return {
    repository,
    list,
    dirty: decision.base === 'synthetic',
    unshallow: options.unshallow && repository.shallow,
    notes: describeTree(list, {
      largeFiles: decision.notes.includes('large_files_as_checked_out'),
      shallow: repository.shallow && !options.unshallow,
    }),
  };
}

/** What a caller should know about what travels and what does not. */
export function describeTree(list: UploadList, facts: { readonly largeFiles: boolean; readonly shallow: boolean }): string[] {
  const notes: string[] = [];
  const name = (path: Buffer): string => cleanLine(path.toString('utf8'), 200);
  const some = (paths: readonly Buffer[]): string => {
    const names = paths.slice(0, NAMED).map(name).join(', ');
    return paths.length > NAMED ? `${names} and ${paths.length - NAMED} more` : names;
  };
  if (list.dirtyPaths > 0)
    notes.push(
      `${count(list.dirtyPaths, 'uncommitted change')} travel${list.dirtyPaths === 1 ? 's' : ''}: the base is a commit made of HEAD and ${list.dirtyPaths === 1 ? 'it' : 'them'}`,
    );
  const secrets = list.leftOut.filter((file) => file.reason === 'secret_shaped').map((file) => file.path);
  if (secrets.length > 0) notes.push(`looks like a secret and stays here: ${some(secrets)} (send with --include-secret PATH)`);
  const { ignored } = list.leftOutCounts;
  if (ignored > 0) notes.push(`${count(ignored, 'ignored path')} stay${ignored === 1 ? 's' : ''} here (send with --include PATH)`);
  const sent = list.files.filter((file) => file.secret !== undefined).map((file) => file.path);
  if (sent.length > 0) notes.push(`looks like a secret and travels: ${some(sent)}`);
  const nested = list.leftOut.filter((file) => file.reason === 'nested_repository').map((file) => file.path);
  if (nested.length > 0) notes.push(`repositories inside this one stay here: ${some(nested)}`);
  if (list.submodules.length > 0) notes.push(`submodules stay empty: ${some(list.submodules)}`);
  if (list.sparsePaths > 0)
    notes.push(`${count(list.sparsePaths, 'file')} outside the sparse checkout stay${list.sparsePaths === 1 ? 's' : ''} here`);
  if (facts.largeFiles) notes.push('large files travel as they are checked out here');
  if (facts.shallow) notes.push('the clone is shallow: the agent sees its short history (send all of it with --unshallow)');
  return notes;
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}

/** Packs HEAD and the files that travel, and uploads both. Throws `tree_incomplete` when a file could not be read. */
export async function uploadTree(
  tree: LocalTree,
  client: FirecrewClient,
  scratchRoot: string,
  env: Environment,
): Promise<RepositorySource> {
  const scratch = await mkdtemp(join(scratchRoot, 'upload-'));
  try {
    const { repository, list, dirty } = tree;
    const packFile = join(scratch, 'head.pack');
    const pack = tree.unshallow ? await packWholeHistory(repository, packFile, { env }) : await packHead(repository, packFile);
    const snapshotFile = join(scratch, 'tree.snapshot');
    const onlyPaths = new Set(list.files.map((file) => file.path.toString('latin1')));
    const snapshot = await snapshotDirectory(repository.root, snapshotFile, { onlyPaths });
    if (!snapshot.report.complete) {
      const lost = snapshot.report.skipped
        .slice(0, NAMED)
        .map(({ path, reason }) => `${cleanLine(path.toString('utf8'), 200)} (${reason})`);
      throw new CodedError('tree_incomplete', `files of ${repository.root} cannot be sent: ${lost.join(', ')}`, {
        id: repository.root,
        action: 'Make them readable, or ignore them.',
      });
    }
    const packDigest = await digestOf(packFile);
    await client.upload(packFile, packDigest);
    await client.upload(snapshotFile, snapshot.blobDigest);
    const latin1 = (paths: readonly Buffer[]): string[] => (dirty ? paths.map((path) => path.toString('latin1')) : []);
    return {
      kind: 'upload',
      pack: packDigest,
      shallow:
        pack.shallow === undefined
          ? []
          : pack.shallow
              .toString('latin1')
              .split('\n')
              .filter((line) => line !== ''),
      head: pack.commit,
      branch: repository.branch ?? null,
      snapshot: snapshot.blobDigest,
      snapshotId: snapshot.snapshotId,
      dirty,
      changed: latin1(list.synthetic.changed),
      removed: latin1(list.synthetic.removed),
      author: await readAuthor(repository, env),
      includedSecrets: list.files
        .filter((file) => file.secret !== undefined)
        .map((file) => file.path.toString('utf8'))
        .slice(0, 1_000),
    };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Who made the uncommitted changes: the caller, as git knows them. */
async function readAuthor(repository: LocalRepository, env: Environment): Promise<{ name: string; email: string } | null> {
  const ask = async (key: string): Promise<string> => {
    const answer = await runGit(['config', '--get', key], {
      gitDir: repository.gitDir,
      cwd: repository.root,
      userEnv: env,
      timeoutMs: GIT_LOCAL_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
      exitCodes: [0, 1],
    });
    return answer.exitCode === 0 ? answer.stdout.toString('utf8').replace(/\n$/, '') : '';
  };
  const name = env.GIT_AUTHOR_NAME ?? (await ask('user.name'));
  const email = env.GIT_AUTHOR_EMAIL ?? (await ask('user.email'));
  return name === '' || email === '' ? null : { name: name.slice(0, 200), email: email.slice(0, 200) };
}
