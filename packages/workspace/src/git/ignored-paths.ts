import { isGitName } from '@firecrew/artifact-capture';
import { keyPath, pathKey, splitRecords } from './git-records.ts';
import type { TreeListing } from './list-tree.ts';
import { GIT_LISTING_MAX_BYTES, GIT_LOCAL_TIMEOUT_MS, runGit } from './run-git.ts';
import { withRuleFiles } from './with-rule-files.ts';

/** Those of `paths` (files, relative to the root) that the ignore files of a tree ignore, by `pathKey`. */
export async function findIgnored(missionDir: string, tree: TreeListing, paths: readonly Uint8Array[]): Promise<Set<string>> {
  const sound = paths.filter((path) => !hasGitName(path));
  if (sound.length === 0) return new Set();
  const ignored = await withRuleFiles(missionDir, tree, '.gitignore', false, async ({ gitDir, workTree }) => {
    const { stdout } = await runGit(['check-ignore', '--no-index', '-z', '--stdin'], {
      gitDir,
      workTree,
      // This command refuses literal path names; behind `./` no first character has a meaning of its own.
      input: Buffer.concat(sound.flatMap((path) => [Buffer.from('./'), path, Buffer.from([0])])),
      env: { GIT_LITERAL_PATHSPECS: '0' },
      timeoutMs: GIT_LOCAL_TIMEOUT_MS,
      maxOutputBytes: GIT_LISTING_MAX_BYTES,
      exitCodes: [0, 1],
    });
    return splitRecords(stdout).map((path) => pathKey(path.subarray(2)));
  });
  return new Set(ignored);
}

function hasGitName(path: Uint8Array): boolean {
  return pathKey(path)
    .split('/')
    .some((part) => isGitName(keyPath(part)));
}
