import { isCommitId } from '@firecrew/delivery';
import { malformed, pathKey, splitRecords } from './git-records.ts';
import { GIT_LISTING_MAX_BYTES, GIT_LOCAL_TIMEOUT_MS, runGit } from './run-git.ts';

/** One file, link or submodule of a commit's tree. */
export interface TreeEntry {
  readonly path: Buffer;
  readonly mode: string;
  readonly sha: string;
}

/** A whole tree by `pathKey`. */
export type TreeListing = ReadonlyMap<string, TreeEntry>;

const LINE = /^([0-7]{6}) (blob|commit) ([0-9a-f]+)$/;

/** Reads `ls-tree -r -z`. Throws CodedError `git_answer_malformed`. */
export function parseListing(output: Uint8Array): Map<string, TreeEntry> {
  const listing = new Map<string, TreeEntry>();
  for (const record of splitRecords(output)) {
    const tab = record.indexOf(0x09);
    const [, mode, , sha] = LINE.exec(record.subarray(0, Math.max(0, tab)).toString('latin1')) ?? [];
    if (mode === undefined || sha === undefined || !isCommitId(sha)) throw malformed('a line of ls-tree is not well-formed');
    const path = record.subarray(tab + 1);
    listing.set(pathKey(path), { path, mode, sha });
  }
  return listing;
}

/** Every file, link and submodule of `treeish` in the repository at `gitDir`. */
export async function listTree(gitDir: string, treeish: string, objectDirectory?: string): Promise<Map<string, TreeEntry>> {
  const { stdout } = await runGit(['ls-tree', '-r', '-z', '--full-tree', '--end-of-options', treeish], {
    gitDir,
    ...(objectDirectory === undefined ? {} : { objectDirectory }),
    timeoutMs: GIT_LOCAL_TIMEOUT_MS,
    maxOutputBytes: GIT_LISTING_MAX_BYTES,
  });
  return parseListing(stdout);
}
