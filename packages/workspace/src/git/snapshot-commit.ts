import { type EntryKind, tarEnd, tarPadding, writeTarHeader } from '@firecrew/artifact-capture';
import { type ArchiveSnapshot, canonicaliseArchive } from '../tree/index.ts';
import { listTree, type TreeEntry } from './list-tree.ts';
import { readObjects } from './read-objects.ts';

/** Longest link target that is read, in bytes. */
const LINK_TARGET_MAX_BYTES = 64 * 1024;

/**
 * Writes the tree of a commit as a snapshot blob: contents as they are stored, no filter, no attribute. Submodules have no
 * content here and are left out. Throws as {@link readObjects} and `canonicaliseArchive`.
 */
export async function snapshotCommit(gitDir: string, commit: string, file: string): Promise<ArchiveSnapshot> {
  const listing = [...(await listTree(gitDir, commit)).values()].filter((entry) => entry.mode !== '160000');
  return await canonicaliseArchive(archiveOf(gitDir, listing), file);
}

/** One `.gitignore` of a commit. */
export interface IgnoreFileOfCommit {
  /** Folder it lies in, relative to the root, empty for the root. */
  readonly dir: string;
  readonly text: string;
}

/** Largest `.gitignore` that is read, in bytes, and how many. */
export const IGNORE_FILE_MAX_BYTES = 256 * 1024;
export const IGNORE_FILES_MAX = 2000;

/** The ignore rules that a commit carries. Files that are too large are passed over. */
export async function readIgnoreFiles(gitDir: string, commit: string): Promise<IgnoreFileOfCommit[]> {
  const entries = [...(await listTree(gitDir, commit)).values()]
    .filter((entry) => (entry.mode === '100644' || entry.mode === '100755') && /(?:^|\/)\.gitignore$/.test(entry.path.toString('latin1')))
    .slice(0, IGNORE_FILES_MAX);
  const files: IgnoreFileOfCommit[] = [];
  let at = 0;
  for await (const object of readObjects(
    gitDir,
    entries.map((entry) => entry.sha),
  )) {
    const parts: Buffer[] = [];
    for await (const part of object.content) if (object.size <= IGNORE_FILE_MAX_BYTES) parts.push(part);
    const path = entries[at]?.path.toString('utf8') ?? '';
    at += 1;
    if (object.size <= IGNORE_FILE_MAX_BYTES)
      files.push({ dir: path.slice(0, Math.max(0, path.lastIndexOf('/'))), text: Buffer.concat(parts).toString('utf8') });
  }
  return files;
}

async function* archiveOf(gitDir: string, listing: readonly TreeEntry[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const object of readObjects(
    gitDir,
    listing.map((entry) => entry.sha),
  )) {
    const entry = listing[at];
    at += 1;
    if (entry === undefined) break;
    if (entry.mode === '120000') yield writeTarHeader({ path: entry.path, kind: 'link', size: 0, target: await wholeOf(object.content) });
    else {
      const kind: EntryKind = entry.mode === '100755' ? 'executable' : 'file';
      yield writeTarHeader({ path: entry.path, kind, size: object.size });
      yield* object.content;
      yield tarPadding(object.size);
    }
  }
  yield tarEnd();
}

async function wholeOf(content: AsyncIterable<Buffer>): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of content) {
    size += part.length;
    if (size <= LINK_TARGET_MAX_BYTES) parts.push(part);
  }
  return Buffer.concat(parts);
}
