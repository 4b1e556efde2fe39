import { closeSync, constants, type Dirent, fstatSync, openSync, readlinkSync, type Stats } from 'node:fs';
import { decideExclusion, isGitmodulesName, isGitName, type TreeLimits } from '@firecrew/artifact-capture';
import { codeOf } from '@firecrew/base';
import { countFiles } from './count-files.ts';
import { bytesOfKey, closeFolder, type FolderHandle, inFolder, listFolder, openFolder } from './folder-handles.ts';
import { foldersLeadingTo, type PathSet } from './path-set.ts';
import type { PackLog, PackSkipReason } from './tree-report.ts';

// Without O_NONBLOCK the open of a FIFO that took a file's place would hang.
const OPEN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** What of a tree is wanted. */
export interface TreeSelection {
  /** Leave folders out by the exclusion rule; default false. */
  readonly exclude?: boolean;
  /** Paths tracked at the base; a folder that leads to one is never left out. */
  readonly trackedPaths?: PathSet;
  /** True when the base's ignore rules ignore this folder. */
  readonly isIgnored?: (folder: Buffer) => boolean;
  /** Only these files, links and empty folders; everything else does not exist for the walk. */
  readonly onlyPaths?: PathSet;
}

/** One entry, in canonical order. `key` is its path, one character for each byte; a file's `fd` is open until the walk goes on. */
export type WalkedEntry =
  | { readonly kind: 'file'; readonly key: string; readonly fd: number; readonly stats: Stats }
  | { readonly kind: 'link'; readonly key: string; readonly target: Buffer }
  | { readonly kind: 'directory'; readonly key: string };

/**
 * Walks a tree depth first in canonical order. Links are never followed, special files and `.git` in any spelling are
 * dropped; what is dropped goes to the log.
 */
export function* walkTree(root: string, selection: TreeSelection, limits: TreeLimits, log: PackLog): Generator<WalkedEntry, void> {
  const walk = new Walk(selection, limits, log);
  const folder = openFolder(root, true);
  try {
    yield* walk.folder(folder, '', 1);
  } finally {
    closeFolder(folder);
  }
}

class Walk {
  readonly #selection: TreeSelection;
  readonly #limits: TreeLimits;
  readonly #log: PackLog;
  readonly #trackedFolders: PathSet;
  readonly #wantedFolders: PathSet | undefined;

  constructor(selection: TreeSelection, limits: TreeLimits, log: PackLog) {
    this.#selection = selection;
    this.#limits = limits;
    this.#log = log;
    this.#trackedFolders = foldersLeadingTo(selection.trackedPaths ?? []);
    this.#wantedFolders = selection.onlyPaths === undefined ? undefined : foldersLeadingTo(selection.onlyPaths);
  }

  /** Yields what lies in a folder; returns whether it was anything, or undefined when it could not be read. */
  *folder(folder: FolderHandle, key: string, depth: number): Generator<WalkedEntry, boolean | undefined> {
    const children = depth === 1 ? sortedChildren(folder) : this.#try(key, () => sortedChildren(folder));
    if (children === undefined) return undefined;
    let any = false;
    for (const child of children) {
      const childKey = key === '' ? child.name : `${key}/${child.name}`;
      if (this.#isDropped(folder, child, childKey, depth)) continue;
      if (child.isDirectory()) any = (yield* this.#enter(folder, child.name, childKey, depth)) || any;
      else if (child.isSymbolicLink()) {
        const target = this.#try(childKey, () => readlinkSync(inFolder(folder, child.name), 'buffer'));
        if (target === undefined) continue;
        yield { kind: 'link', key: childKey, target };
        any = true;
      } else {
        const file = this.#openFile(folder, child.name, childKey);
        if (file === undefined) continue;
        try {
          yield file;
        } finally {
          closeSync(file.fd);
        }
        any = true;
      }
    }
    return any;
  }

  #isDropped(parent: FolderHandle, child: Dirent, key: string, depth: number): boolean {
    if (!this.#isWanted(child, key)) return true;
    if (isGitName(child.name)) this.#skip(key, 'git_metadata');
    else if (child.isSymbolicLink() && isGitmodulesName(child.name)) this.#skip(key, 'gitmodules_link');
    else if (depth > this.#limits.maxDepth) this.#skip(key, 'too_deep');
    // A folder's name travels with a slash behind it.
    else if (key.length >= this.#limits.maxNameBytes) this.#skip(key, 'name_too_long');
    else if (!child.isDirectory() && !child.isFile() && !child.isSymbolicLink()) this.#skip(key, 'special_file');
    else return child.isDirectory() && this.#isLeftOut(parent, child.name, key);
    return true;
  }

  #isWanted(child: Dirent, key: string): boolean {
    const only = this.#selection.onlyPaths;
    if (only === undefined) return true;
    return only.has(key) || (child.isDirectory() && this.#wantedFolders?.has(key) === true);
  }

  #isLeftOut(parent: FolderHandle, name: string, key: string): boolean {
    if (this.#selection.exclude !== true) return false;
    const path = bytesOfKey(key);
    const decision = decideExclusion({
      name: bytesOfKey(name),
      holdsTracked: this.#trackedFolders.has(key) || this.#selection.trackedPaths?.has(key) === true,
      isIgnored: this.#selection.isIgnored?.(path) ?? false,
    });
    if (decision.verdict === 'keep') return false;
    const count = countFiles(inFolder(parent, name));
    this.#log.omitted.add({ path, rule: decision.rule, warn: decision.warn, ...count });
    return true;
  }

  *#enter(parent: FolderHandle, name: string, key: string, depth: number): Generator<WalkedEntry, boolean> {
    const folder = this.#try(key, () => openFolder(inFolder(parent, name)));
    if (folder === undefined) return false;
    try {
      const any = yield* this.folder(folder, key, depth + 1);
      const isWantedEmpty = any === false && (this.#selection.onlyPaths?.has(key) ?? true);
      if (isWantedEmpty) yield { kind: 'directory', key };
      return any === true || isWantedEmpty;
    } finally {
      closeFolder(folder);
    }
  }

  /** Opens a file and looks at it through its handle; undefined, and told, when it cannot be packed. */
  #openFile(parent: FolderHandle, name: string, key: string): Extract<WalkedEntry, { kind: 'file' }> | undefined {
    const fd = this.#try(key, () => openSync(inFolder(parent, name), OPEN_FILE));
    if (fd === undefined) return undefined;
    try {
      const stats = fstatSync(fd);
      if (stats.isFile() && stats.size <= this.#limits.maxFileBytes) return { kind: 'file', key, fd, stats };
      this.#skip(key, stats.isFile() ? 'too_large' : 'vanished');
    } catch (error) {
      closeSync(fd);
      throw error;
    }
    closeSync(fd);
    return undefined;
  }

  #skip(key: string, reason: PackSkipReason): void {
    this.#log.skip(bytesOfKey(key), reason);
  }

  #try<Value>(key: string, action: () => Value): Value | undefined {
    try {
      return action();
    } catch (error) {
      // Another type at this name than the listing said is a race with whoever writes in the tree.
      const code = codeOf(error);
      const gone = code === 'ENOENT' || code === 'ELOOP' || code === 'ENOTDIR' || code === 'EINVAL' || code === 'ENXIO';
      this.#skip(key, gone ? 'vanished' : 'unreadable');
      return undefined;
    }
  }
}

/** In canonical order, in which a folder's name ends in a slash. */
function sortedChildren(folder: FolderHandle): Dirent[] {
  const keyed = listFolder(folder).map((child) => ({ child, key: child.isDirectory() ? `${child.name}/` : child.name }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ child }) => child);
}
