import { isGitmodulesName, isGitName, type ManifestEntry } from '@firecrew/artifact-capture';
import { keyPath, pathKey } from './git-records.ts';
import type { TreeListing } from './list-tree.ts';

/** Why a path of a collected tree does not enter the commit. */
export type NotImportedReason = 'git_name' | 'ignored' | 'symbolic_gitmodules' | 'inside_submodule' | 'is_submodule';

/** A path that stays as it was in the base, and why. */
export interface NotImported {
  readonly path: Uint8Array;
  readonly reason: NotImportedReason;
}

/** What is done to a base tree. */
export interface TreeChangePlan {
  /** Files and links to write, in the given order. */
  readonly set: readonly ManifestEntry[];
  /** Paths to take out, those in the way of `set` included. */
  readonly remove: readonly Buffer[];
  readonly notImported: readonly NotImported[];
}

const SUBMODULE = '160000';

function parentsOf(key: string): string[] {
  const parents: string[] = [];
  for (let at = key.lastIndexOf('/'); at > 0; at = key.lastIndexOf('/', at - 1)) parents.push(key.slice(0, at));
  return parents;
}

function refusal(entry: ManifestEntry, key: string, base: TreeListing, baseFolders: ReadonlySet<string>): NotImportedReason | undefined {
  const parts = key.split('/').map(keyPath);
  if (parts.some(isGitName)) return 'git_name';
  const last = parts.at(-1);
  if (entry.kind === 'link' && last !== undefined && isGitmodulesName(last)) return 'symbolic_gitmodules';
  if (base.get(key)?.mode === SUBMODULE) return 'is_submodule';
  if (parentsOf(key).some((parent) => base.get(parent)?.mode === SUBMODULE)) return 'inside_submodule';
  return baseFolders.has(key) && [...base].some(([path, old]) => old.mode === SUBMODULE && path.startsWith(`${key}/`))
    ? 'is_submodule'
    : undefined;
}

function foldersOf(base: TreeListing): Set<string> {
  const folders = new Set<string>();
  for (const key of base.keys()) for (const parent of parentsOf(key)) folders.add(parent);
  return folders;
}

/**
 * What becomes of the base's tree when `set` is written and `removed` taken out. Submodules are never touched, folders are not git's to hold, and names
 * that git skips or that other systems read as `.git` are left out by name.
 */
export function planTreeChange(
  base: TreeListing,
  set: readonly ManifestEntry[],
  removed: readonly Uint8Array[],
  ignored: ReadonlySet<string> = new Set(),
): TreeChangePlan {
  const folders = foldersOf(base);
  const wanted: ManifestEntry[] = [];
  const notImported: NotImported[] = [];
  const remove = new Map<string, Buffer>();
  const takeOut = (key: string): void => {
    const old = base.get(key);
    if (old !== undefined && old.mode !== SUBMODULE) remove.set(key, old.path);
  };
  for (const path of removed) takeOut(pathKey(path));
  for (const entry of set) {
    const key = pathKey(entry.path);
    if (entry.kind === 'directory') {
      takeOut(key);
      continue;
    }
    const reason = refusal(entry, key, base, folders) ?? (ignored.has(key) ? 'ignored' : undefined);
    if (reason !== undefined) {
      notImported.push({ path: entry.path, reason });
      continue;
    }
    for (const parent of parentsOf(key)) takeOut(parent);
    if (folders.has(key)) for (const path of base.keys()) if (path.startsWith(`${key}/`)) takeOut(path);
    wanted.push(entry);
  }
  for (const entry of wanted) remove.delete(pathKey(entry.path));
  return { set: wanted, remove: [...remove.values()], notImported };
}

/** The listing the changed tree must have. `shaOf` gives the object of each entry that is set. */
export function expectedListing(base: TreeListing, plan: TreeChangePlan, shaOf: (entry: ManifestEntry) => string): Map<string, string> {
  const expected = new Map<string, string>();
  for (const [key, entry] of base) expected.set(key, `${entry.mode} ${entry.sha}`);
  for (const path of plan.remove) expected.delete(pathKey(path));
  for (const entry of plan.set) expected.set(pathKey(entry.path), `${modeOf(entry)} ${shaOf(entry)}`);
  return expected;
}

/** Git's mode of a file or link. */
export function modeOf(entry: ManifestEntry): '100644' | '100755' | '120000' {
  return entry.kind === 'link' ? '120000' : entry.kind === 'executable' ? '100755' : '100644';
}
