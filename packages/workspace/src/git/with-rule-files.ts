import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { keyPath, pathKey } from './git-records.ts';
import type { TreeListing } from './list-tree.ts';
import { readBlobs } from './read-blobs.ts';
import { withScratchFolder } from './scratch-folder.ts';

/** A git folder of ours with a working tree that holds rule files alone, and the objects of a mission. */
export interface RulePlace {
  readonly gitDir: string;
  readonly workTree: string;
  readonly objectDirectory: string;
}

/**
 * Runs `work` beside the rule files (`.gitignore` or `.gitattributes`) of a commit's tree, or gives undefined when it has none. The rules are a commit's, never
 * those of a collected tree: a guest could otherwise hide or rewrite what it did.
 */
export async function withRuleFiles<T>(
  missionDir: string,
  tree: TreeListing,
  name: '.gitignore' | '.gitattributes',
  always: boolean,
  work: (place: RulePlace) => Promise<T>,
): Promise<T | undefined> {
  const rules = [...tree.values()].filter((entry) => isNamed(pathKey(entry.path), name) && entry.mode.startsWith('100'));
  if (rules.length === 0 && !always) return undefined;
  return await withScratchFolder(async (folder) => {
    const [gitDir, workTree] = [join(folder, 'git'), join(folder, 'tree')];
    for (const path of [join(gitDir, 'refs'), join(gitDir, 'objects'), workTree]) await mkdir(path, { recursive: true });
    await writeFile(join(gitDir, 'HEAD'), 'ref: refs/heads/none\n');
    const sha256 = [...tree.values()].some((entry) => entry.sha.length === 64);
    await writeFile(join(gitDir, 'config'), sha256 ? '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n' : '');
    const shas = rules.map((entry) => entry.sha);
    const contents = shas.length === 0 ? [] : await readBlobs(missionDir, shas);
    for (const [at, entry] of rules.entries()) {
      const path = Buffer.concat([Buffer.from(`${workTree}/`), entry.path]);
      await mkdir(keyPath(dirname(pathKey(path))), { recursive: true });
      await writeFile(path, contents[at] ?? '');
    }
    return await work({ gitDir, workTree, objectDirectory: join(missionDir, 'objects') });
  });
}

function isNamed(key: string, name: string): boolean {
  return key === name || key.endsWith(`/${name}`);
}
