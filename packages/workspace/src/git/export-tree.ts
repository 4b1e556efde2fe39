import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { treeOf } from './import-changes.ts';
import { GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';
import { withScratchFolder } from './scratch-folder.ts';

// The strongest attribute file there is: what a tree says about line endings, filters and keywords is not followed, so files come out as they were committed.
const AS_COMMITTED = '* -text -eol -crlf -ident -filter -working-tree-encoding\n';

/**
 * Writes the files and links of a commit into the new folder `folder`, byte for byte; submodules become empty folders. No filter is run.
 * Throws CodedError `base_missing` and those of `runGit`; an existing folder is `EEXIST`.
 */
export async function exportTree(missionDir: string, commit: string, folder: string): Promise<void> {
  const tree = await treeOf(missionDir, commit);
  await mkdir(folder, { mode: 0o700 });
  await withScratchFolder(async (gitDir) => {
    await mkdir(join(gitDir, 'refs'));
    await mkdir(join(gitDir, 'info'));
    await mkdir(join(gitDir, 'objects'));
    await writeFile(join(gitDir, 'HEAD'), 'ref: refs/heads/none\n');
    await writeFile(join(gitDir, 'info', 'attributes'), AS_COMMITTED);
    const sha256 = tree.length === 64 ? '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n' : '';
    await writeFile(join(gitDir, 'config'), sha256);
    const place = { gitDir, workTree: folder, objectDirectory: join(missionDir, 'objects') };
    const limits = { timeoutMs: GIT_PACK_TIMEOUT_MS, maxOutputBytes: GIT_SMALL_OUTPUT_BYTES };
    await runGit(['read-tree', tree], { ...place, ...limits });
    await runGit(['checkout-index', '--all', '--quiet'], { ...place, ...limits });
  });
}
