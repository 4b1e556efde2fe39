import { rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import { isCommitId } from '@firecrew/delivery';
import { indexPack } from './index-pack.ts';
import { GIT_LOCAL_TIMEOUT_MS, GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, type GitOptions, runGit } from './run-git.ts';

/** Bytes of a `shallow` file, at most. */
export const SHALLOW_FILE_MAX_BYTES = 1024 * 1024;

type Place = Pick<GitOptions, 'gitDir' | 'objectDirectory'>;

function checkId(commit: string): void {
  if (!isCommitId(commit)) throw new CodedError('commit_id_malformed', `${JSON.stringify(commit)} is no full commit id`);
}

/** Writes a pack of `commit` and its history, without what `not` reaches, to the new file `outFile`; gives its size in bytes. */
export async function writePack(place: Place, commit: string, not: readonly string[], outFile: string): Promise<number> {
  for (const id of [commit, ...not]) checkId(id);
  const revisions = [commit, ...not.map((id) => `^${id}`)].map((line) => `${line}\n`).join('');
  try {
    await runGit(['pack-objects', '--revs', '--stdout', '--delta-base-offset', '-q'], {
      ...place,
      input: Buffer.from(revisions),
      outFile,
      timeoutMs: GIT_PACK_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') await rm(outFile, { force: true });
    throw error;
  }
  return (await stat(outFile)).size;
}

/** Reads a `shallow` file strictly: one full commit id a line. Throws CodedError `shallow_malformed`. */
export function parseShallow(bytes: Uint8Array): string[] {
  const refuse = (): CodedError => new CodedError('shallow_malformed', 'a shallow file is not a list of commit ids');
  if (bytes.length > SHALLOW_FILE_MAX_BYTES) throw refuse();
  const lines = Buffer.from(bytes).toString('latin1').split('\n');
  if (lines.pop() !== '' || !lines.every(isCommitId)) throw refuse();
  return lines;
}

/** What comes with a pack: where its history is cut, and the commit that must then be complete. */
export interface PackImport {
  readonly shallow?: Uint8Array;
  readonly head?: string;
}

/**
 * Reads a pack into a repository of ours and checks that `head` is complete.
 * Throws the codes of `indexPack`, CodedError `pack_incomplete`, `shallow_malformed`.
 */
export async function readPack(gitDir: string, packFile: string, options: PackImport = {}): Promise<void> {
  if (options.shallow !== undefined && options.shallow.length > 0) {
    const lines = parseShallow(options.shallow);
    await writeFile(join(gitDir, 'shallow'), lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
  }
  await indexPack({ gitDir }, packFile, []);
  if (options.head !== undefined) await checkComplete(gitDir, options.head);
}

/** Throws CodedError `pack_incomplete` where something of the history of `head` is missing. */
export async function checkComplete(gitDir: string, head: string): Promise<void> {
  checkId(head);
  try {
    await runGit(['rev-list', '--objects', '--quiet', '--end-of-options', head, '--'], {
      gitDir,
      timeoutMs: GIT_PACK_TIMEOUT_MS,
      maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    });
  } catch (error) {
    if (codeOf(error) !== 'git_failed') throw error;
    throw new CodedError('pack_incomplete', `commit ${head} is not complete in the pack that was given`, {
      id: head,
      action: 'Send a pack with its whole history, or the shallow file of the source.',
      cause: error,
    });
  }
}

/** Whether `ancestor` is in the history of `commit`; undefined when it is not here at all. */
export async function isAncestor(place: Place, ancestor: string, commit: string): Promise<boolean | undefined> {
  if (!isCommitId(ancestor) || !isCommitId(commit)) return undefined;
  const { exitCode } = await runGit(['merge-base', '--is-ancestor', ancestor, commit], {
    ...place,
    timeoutMs: GIT_LOCAL_TIMEOUT_MS,
    maxOutputBytes: GIT_SMALL_OUTPUT_BYTES,
    exitCodes: [0, 1, 128],
  });
  return exitCode === 0 ? true : exitCode === 1 ? false : undefined;
}
