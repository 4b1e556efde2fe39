import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { listTree } from './list-tree.ts';
import { readBlobs } from './read-blobs.ts';

/** What a mission must know about a commit before it starts. */
export interface CommitTraits {
  readonly shallow: boolean;
  /** An attribute file of the tree names git-lfs: content is a pointer. */
  readonly lfs: boolean;
  /** Paths of submodules; their content is not fetched. */
  readonly submodules: readonly Buffer[];
}

/** Attribute files that are read for filters, at most. */
export const MAX_ATTRIBUTE_FILES = 1000;

/** Shallow history, large-file filters and submodules of a commit in a repository of ours. */
export async function describeCommit(gitDir: string, commit: string): Promise<CommitTraits> {
  const listing = await listTree(gitDir, commit);
  const submodules: Buffer[] = [];
  const attributes: string[] = [];
  for (const entry of listing.values()) {
    if (entry.mode === '160000') submodules.push(entry.path);
    if (/(?:^|\/)\.gitattributes$/.test(entry.path.toString('latin1')) && entry.mode !== '120000') attributes.push(entry.sha);
  }
  return { shallow: await isShallow(gitDir), lfs: await namesLfs(gitDir, attributes.slice(0, MAX_ATTRIBUTE_FILES)), submodules };
}

async function isShallow(gitDir: string): Promise<boolean> {
  return access(join(gitDir, 'shallow')).then(
    () => true,
    () => false,
  );
}

async function namesLfs(gitDir: string, blobs: readonly string[]): Promise<boolean> {
  if (blobs.length === 0) return false;
  const contents = await readBlobs(gitDir, blobs);
  return contents.some((content) => /^[^#\n]*\sfilter=lfs(?:\s|$)/m.test(content.toString('latin1')));
}
