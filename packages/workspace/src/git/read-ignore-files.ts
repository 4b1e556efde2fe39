import { listTree } from './list-tree.ts';
import { readBlobs } from './read-blobs.ts';

/** One `.gitignore` of a commit. */
export interface IgnoreFile {
  /** Folder it lies in, relative to the root, empty for the root. */
  readonly dir: string;
  readonly text: string;
}

/** Largest `.gitignore` that is read, in characters, and how many. */
export const IGNORE_FILE_MAX_CHARS = 256 * 1024;
export const IGNORE_FILES_MAX = 2000;

/** The ignore rules that a commit carries; files that are too large are passed over. Throws as `readBlobs`. */
export async function readIgnoreFiles(gitDir: string, commit: string): Promise<IgnoreFile[]> {
  const entries = [...(await listTree(gitDir, commit)).values()]
    .filter((entry) => entry.mode.startsWith('100') && /(?:^|\/)\.gitignore$/.test(entry.path.toString('latin1')))
    .slice(0, IGNORE_FILES_MAX);
  if (entries.length === 0) return [];
  const contents = await readBlobs(
    gitDir,
    entries.map((entry) => entry.sha),
  );
  const files = entries.map((entry, at) => {
    const path = entry.path.toString('utf8');
    return { dir: path.slice(0, Math.max(0, path.lastIndexOf('/'))), text: contents[at]?.toString('utf8') ?? '' };
  });
  return files.filter((file) => file.text.length <= IGNORE_FILE_MAX_CHARS);
}
