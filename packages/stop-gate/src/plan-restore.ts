import { matchesGlob, parseGlobs } from './match-glob.ts';

/** What to undo in the tree before it is verified. */
export interface RestorePlan<Entry> {
  /** Entries of the base to write again, in the order of the base. */
  readonly restore: readonly Entry[];
  /** Paths to remove first, sorted: new ones under protection, and ones that stand where a restored entry or its folder belongs. */
  readonly remove: readonly string[];
}

/**
 * Plans how the files under `gate.protect` are put back as they were at the base. `changedPaths` are all added, changed and deleted
 * paths of the collected tree. Throws `glob_invalid` as `parseGlob` does.
 */
export function planRestore<Entry extends { readonly path: string }>(
  globs: readonly string[],
  baseEntries: Iterable<Entry>,
  changedPaths: Iterable<string>,
): RestorePlan<Entry> {
  const parsed = parseGlobs(globs);
  const isProtected = (path: string): boolean => parsed.some((glob) => matchesGlob(glob, path));
  const changed = new Set(changedPaths);
  const base = new Set<string>();
  const restore: Entry[] = [];
  for (const entry of baseEntries) {
    base.add(entry.path);
    if (changed.has(entry.path) && isProtected(entry.path)) restore.push(entry);
  }
  const folders = new Set(restore.flatMap((entry) => foldersAbove(entry.path)));
  const remove = [...changed].filter((path) => (!base.has(path) && isProtected(path)) || folders.has(path));
  return { restore, remove: remove.sort() };
}

function foldersAbove(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join('/'));
}
