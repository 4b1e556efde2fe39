import { closeSync, constants, type Dirent, fstatSync, openSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { decideExclusion, isGitmodulesName, isGitName, type TreeLimits } from '@firecrew/artifact-capture';
import { codeOf } from '@firecrew/base';
import { countFiles } from './count-files.ts';
import { closeFolder, type FolderHandle, inFolder, openFolder } from './folder-handles.ts';
import { foldersLeadingTo, type PathSet } from './path-set.ts';
import type { PackLog } from './tree-report.ts';

// Without O_NONBLOCK the open of a FIFO that took a file's place would hang.
const OPEN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const SLASH = Buffer.from('/');

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

/** One entry, in canonical order. A file's `fd` is open until the walk goes on. */
export type WalkedEntry =
  | { readonly kind: 'file'; readonly path: Buffer; readonly fd: number; readonly stats: Stats }
  | { readonly kind: 'link'; readonly path: Buffer; readonly target: Buffer }
  | { readonly kind: 'directory'; readonly path: Buffer };

/**
 * Walks a tree depth first in canonical order. Links are never followed, special files and `.git` in any spelling are
 * dropped; what is dropped goes to the log.
 */
export function* walkTree(root: string, selection: TreeSelection, limits: TreeLimits, log: PackLog): Generator<WalkedEntry, void> {
  const walk = new Walk(selection, limits, log);
  const folder = openFolder(Buffer.from(root), true);
  try {
    yield* walk.folder(folder, Buffer.alloc(0), 1);
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
  *folder(folder: FolderHandle, path: Buffer, depth: number): Generator<WalkedEntry, boolean | undefined> {
    const children = depth === 1 ? sortedChildren(folder) : this.#try(path, () => sortedChildren(folder));
    if (children === undefined) return undefined;
    let any = false;
    for (const child of children) {
      const childPath = path.length === 0 ? child.name : Buffer.concat([path, SLASH, child.name]);
      if (this.#isDropped(folder, child, childPath, depth)) continue;
      const walked = child.isDirectory()
        ? yield* this.#enter(folder, child, childPath, depth)
        : yield* this.#leaf(folder, child, childPath);
      any = walked || any;
    }
    return any;
  }

  #isDropped(parent: FolderHandle, child: Dirent<Buffer>, path: Buffer, depth: number): boolean {
    if (!this.#isWanted(child, path)) return true;
    if (isGitName(child.name)) this.#log.skip(path, 'git_metadata');
    else if (child.isSymbolicLink() && isGitmodulesName(child.name)) this.#log.skip(path, 'gitmodules_link');
    else if (depth > this.#limits.maxDepth) this.#log.skip(path, 'too_deep');
    // A folder's name travels with a slash behind it.
    else if (path.length >= this.#limits.maxNameBytes) this.#log.skip(path, 'name_too_long');
    else if (!child.isDirectory() && !child.isFile() && !child.isSymbolicLink()) this.#log.skip(path, 'special_file');
    else return child.isDirectory() && this.#isLeftOut(parent, child.name, path);
    return true;
  }

  #isWanted(child: Dirent<Buffer>, path: Buffer): boolean {
    const only = this.#selection.onlyPaths;
    if (only === undefined) return true;
    const key = path.toString('latin1');
    return only.has(key) || (child.isDirectory() && this.#wantedFolders?.has(key) === true);
  }

  #isLeftOut(parent: FolderHandle, name: Buffer, path: Buffer): boolean {
    if (this.#selection.exclude !== true) return false;
    const key = path.toString('latin1');
    const decision = decideExclusion({
      name,
      holdsTracked: this.#trackedFolders.has(key) || this.#selection.trackedPaths?.has(key) === true,
      isIgnored: this.#selection.isIgnored?.(path) ?? false,
    });
    if (decision.verdict === 'keep') return false;
    const count = countFiles(inFolder(parent, name));
    this.#log.omitted.add({ path, rule: decision.rule, warn: decision.warn, ...count });
    return true;
  }

  *#enter(parent: FolderHandle, child: Dirent<Buffer>, path: Buffer, depth: number): Generator<WalkedEntry, boolean> {
    const folder = this.#try(path, () => openFolder(inFolder(parent, child.name)));
    if (folder === undefined) return false;
    try {
      const any = yield* this.folder(folder, path, depth + 1);
      const isWantedEmpty = any === false && (this.#selection.onlyPaths?.has(path.toString('latin1')) ?? true);
      if (isWantedEmpty) yield { kind: 'directory', path };
      return any === true || isWantedEmpty;
    } finally {
      closeFolder(folder);
    }
  }

  *#leaf(parent: FolderHandle, child: Dirent<Buffer>, path: Buffer): Generator<WalkedEntry, boolean> {
    const name = inFolder(parent, child.name);
    if (child.isSymbolicLink()) {
      const target = this.#try(path, () => readlinkSync(name, 'buffer'));
      if (target === undefined) return false;
      yield { kind: 'link', path, target };
      return true;
    }
    const fd = this.#try(path, () => openSync(name, OPEN_FILE));
    if (fd === undefined) return false;
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile()) this.#log.skip(path, 'vanished');
      else if (stats.size > this.#limits.maxFileBytes) this.#log.skip(path, 'too_large');
      else {
        yield { kind: 'file', path, fd, stats };
        return true;
      }
      return false;
    } finally {
      closeSync(fd);
    }
  }

  #try<Value>(path: Buffer, action: () => Value): Value | undefined {
    try {
      return action();
    } catch (error) {
      // Another type at this name than the listing said is a race with whoever writes in the tree.
      const code = codeOf(error);
      const gone = code === 'ENOENT' || code === 'ELOOP' || code === 'ENOTDIR' || code === 'EINVAL' || code === 'ENXIO';
      this.#log.skip(path, gone ? 'vanished' : 'unreadable');
      return undefined;
    }
  }
}

function sortedChildren(folder: FolderHandle): Dirent<Buffer>[] {
  const keyed = readdirSync(folder.base, { encoding: 'buffer', withFileTypes: true }).map((child) => ({
    child,
    key: child.isDirectory() ? Buffer.concat([child.name, SLASH]) : child.name,
  }));
  return keyed.sort((a, b) => Buffer.compare(a.key, b.key)).map(({ child }) => child);
}
