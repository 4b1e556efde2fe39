import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isGitName } from '@firecrew/artifact-capture';
import { keyPath, pathKey, splitRecords } from './git-records.ts';
import type { TreeListing } from './list-tree.ts';
import { readBlobs } from './read-blobs.ts';
import { GIT_LISTING_MAX_BYTES, GIT_LOCAL_TIMEOUT_MS, runGit } from './run-git.ts';

/**
 * Those of `paths` (files, relative to the root) that the ignore files of a tree ignore, by `pathKey`. The rules are a commit's, never those of a collected
 * tree: a guest could otherwise hide its work.
 */
export async function findIgnored(gitDir: string, tree: TreeListing, paths: readonly Uint8Array[]): Promise<Set<string>> {
  const rules = [...tree.values()].filter((entry) => /(?:^|\/)\.gitignore$/.test(pathKey(entry.path)) && /^100/.test(entry.mode));
  if (rules.length === 0 || paths.length === 0) return new Set();
  const folder = await mkdtemp(join(tmpdir(), 'firecrew-git-'));
  const workTree = join(folder, 'tree');
  const shadow = join(folder, 'git');
  try {
    await mkdir(join(shadow, 'refs'), { recursive: true });
    await mkdir(join(shadow, 'objects'));
    await mkdir(workTree);
    await writeFile(join(shadow, 'HEAD'), 'ref: refs/heads/none\n');
    const contents = await readBlobs(
      gitDir,
      rules.map((entry) => entry.sha),
    );
    for (const [at, entry] of rules.entries()) {
      const path = Buffer.concat([Buffer.from(`${workTree}/`), entry.path]);
      await mkdir(keyPath(dirname(pathKey(path))), { recursive: true });
      await writeFile(path, contents[at] ?? '');
    }
    // This command refuses literal path names; behind `./` no first character has a meaning of its own.
    const sound = paths.filter((path) => !hasGitName(path));
    const input = Buffer.concat(sound.flatMap((path) => [Buffer.from('./'), path, Buffer.from([0])]));
    const { stdout } = await runGit(['check-ignore', '--no-index', '-z', '--stdin'], {
      gitDir: shadow,
      workTree,
      input,
      env: { GIT_LITERAL_PATHSPECS: '0' },
      timeoutMs: GIT_LOCAL_TIMEOUT_MS,
      maxOutputBytes: GIT_LISTING_MAX_BYTES,
      exitCodes: [0, 1],
    });
    return new Set(splitRecords(stdout).map((path) => pathKey(path.subarray(2))));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function hasGitName(path: Uint8Array): boolean {
  return pathKey(path)
    .split('/')
    .some((part) => isGitName(keyPath(part)));
}
