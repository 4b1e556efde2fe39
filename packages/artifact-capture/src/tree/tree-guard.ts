import { fromByteKey } from '../bytes.ts';
import { CaptureError } from '../capture-error.ts';
import type { SkipReason } from '../reasons.ts';
import { isGitmodulesName, isGitName } from './git-names.ts';
import type { TreeLimits } from './limits.ts';
import { type NormalPath, normalisePath } from './normalise-path.ts';

interface Known {
  readonly type: 'file' | 'link' | 'directory' | 'dropped';
  readonly path: Uint8Array;
  readonly size: number;
  readonly executable: boolean;
  declared: boolean;
  hasChildren: boolean;
}

/** What an archive says about one entry, before any rule. */
export interface ProposedEntry {
  readonly name: Uint8Array;
  readonly type: 'file' | 'link' | 'copy' | 'directory' | 'special' | 'unknown';
  readonly size: number;
  readonly executable: boolean;
  /** Target of a link or a copy. */
  readonly target: Uint8Array;
}

/** An entry that passed, one to drop, or the root itself, which changes nothing. */
export type AdmittedEntry =
  | { readonly verdict: 'keep'; readonly type: 'directory'; readonly path: Uint8Array }
  | { readonly verdict: 'keep'; readonly type: 'file'; readonly path: Uint8Array; readonly size: number; readonly executable: boolean }
  | { readonly verdict: 'keep'; readonly type: 'link'; readonly path: Uint8Array; readonly target: Uint8Array }
  | {
      readonly verdict: 'keep';
      readonly type: 'copy';
      readonly path: Uint8Array;
      readonly source: Uint8Array;
      readonly size: number;
      readonly executable: boolean;
    }
  | { readonly verdict: 'skip'; readonly path: Uint8Array; readonly reason: SkipReason }
  | { readonly verdict: 'root' };

/**
 * The rules that hold between the entries of one archive: no name twice, no type change, nothing below a link or a file,
 * hard links only to files already delivered, all within bounds. One guard per archive, entries strictly in order.
 */
export class TreeGuard {
  readonly #limits: TreeLimits;
  readonly #known = new Map<string, Known>();
  #entries = 0;
  #namesBytes = 0;
  #totalBytes = 0;
  /** The folder of the last entry: it and all above it are known as folders that hold something, which never changes again. */
  #lastParent = '';

  constructor(limits: TreeLimits) {
    this.#limits = limits;
  }

  /** Judges the next entry. @throws CaptureError when the archive is to be refused as a whole. */
  admit(entry: ProposedEntry): AdmittedEntry {
    this.#count(entry.name.length + entry.target.length);
    const normal = normalisePath(entry.name, this.#limits);
    if (entry.type !== 'file' && entry.type !== 'unknown' && entry.size > 0) {
      throw new CaptureError('payload_on_non_file', 'an entry that is no file has content', normal.path);
    }
    this.#countBytes(entry.size, normal.path);
    if (normal.components.length === 0) return this.#admitRoot(entry, normal);
    if (entry.type !== 'directory' && normal.namesFolder) {
      throw new CaptureError('file_path_is_folder', 'an entry that is no folder ends in a slash', normal.path);
    }
    const reason = skipReason(entry, normal);
    if (reason === 'git_metadata') return { verdict: 'skip', path: normal.path, reason };
    if (reason === undefined) this.#admitParents(normal);
    else this.#checkParents(normal);
    return reason === undefined ? this.#keep(entry, normal) : this.#drop(normal, reason);
  }

  /** Folders the archive named that hold nothing. */
  emptyDirectories(): Uint8Array[] {
    return [...this.#known.values()].filter((known) => known.type === 'directory' && !known.hasChildren).map((known) => known.path);
  }

  #admitRoot(entry: ProposedEntry, normal: NormalPath): AdmittedEntry {
    if (entry.type === 'directory') return { verdict: 'root' };
    throw new CaptureError('empty_path', 'the root of the tree is no folder', normal.path);
  }

  #keep(entry: ProposedEntry, normal: NormalPath): AdmittedEntry {
    const { path } = normal;
    switch (entry.type) {
      case 'directory':
        this.#addDirectory(normal);
        return { verdict: 'keep', type: 'directory', path };
      case 'link':
        this.#add(normal, 'link', 0, false);
        return { verdict: 'keep', type: 'link', path, target: this.#linkTarget(entry.target, path) };
      case 'copy': {
        const source = this.#copySource(entry.target, path);
        this.#countBytes(source.size, path);
        this.#add(normal, 'file', source.size, source.executable);
        return { verdict: 'keep', type: 'copy', path, source: source.path, size: source.size, executable: source.executable };
      }
      default:
        this.#add(normal, 'file', entry.size, entry.executable);
        return { verdict: 'keep', type: 'file', path, size: entry.size, executable: entry.executable };
    }
  }

  #drop(normal: NormalPath, reason: SkipReason): AdmittedEntry {
    this.#add(normal, 'dropped', 0, false);
    return { verdict: 'skip', path: normal.path, reason };
  }

  #add({ path, key }: NormalPath, type: Known['type'], size: number, executable: boolean): void {
    const existing = this.#known.get(key);
    if (existing !== undefined) {
      const code = existing.type === type ? 'duplicate_path' : 'type_changed';
      throw new CaptureError(code, 'a name is there twice', path);
    }
    this.#known.set(key, { type, path, size, executable, declared: true, hasChildren: false });
  }

  #addDirectory(normal: NormalPath): void {
    const existing = this.#known.get(normal.key);
    if (existing?.type === 'directory' && !existing.declared) existing.declared = true;
    else this.#add(normal, 'directory', 0, false);
  }

  /** Parents that were not named come into being, and count. */
  #admitParents({ path, key }: NormalPath): void {
    const parent = key.slice(0, Math.max(0, key.lastIndexOf('/')));
    if (parent === this.#lastParent) return;
    for (const folder of foldersOf(key)) {
      const known = this.#known.get(folder);
      if (known === undefined) {
        this.#count(folder.length);
        const made = { path: fromByteKey(folder), size: 0, executable: false, declared: false, hasChildren: true };
        this.#known.set(folder, { type: 'directory', ...made });
      } else if (known.type !== 'directory') throw underNoFolder(path);
      else known.hasChildren = true;
    }
    this.#lastParent = parent;
  }

  /** A dropped entry makes no folder, and may not pass through a link either. */
  #checkParents({ path, key }: NormalPath): void {
    for (const folder of foldersOf(key)) {
      const known = this.#known.get(folder);
      if (known !== undefined && known.type !== 'directory') throw underNoFolder(path);
    }
  }

  #linkTarget(target: Uint8Array, path: Uint8Array): Uint8Array {
    if (target.length === 0) throw new CaptureError('link_target_empty', 'a link has no target', path);
    // A path on disk ends in a NUL that counts, so the longest target that can be stored is one byte shorter.
    if (target.length >= this.#limits.maxNameBytes) throw new CaptureError('path_too_long', 'a link target is too long', path);
    if (target.includes(0)) throw new CaptureError('nul_in_path', 'a link target holds a NUL', path);
    return target;
  }

  #copySource(target: Uint8Array, path: Uint8Array): Known {
    const known = target.length === 0 ? undefined : this.#known.get(normalisePath(target, this.#limits).key);
    if (known?.type === 'file') return known;
    throw new CaptureError('link_target_missing', 'a hard link leads to no file that this archive delivered earlier', path);
  }

  #count(nameBytes: number): void {
    this.#entries += 1;
    this.#namesBytes += nameBytes;
    if (this.#entries > this.#limits.maxEntries) throw new CaptureError('too_many_entries', `more than ${this.#limits.maxEntries} entries`);
    if (this.#namesBytes > this.#limits.maxNamesBytes) throw new CaptureError('names_too_large', 'the names together are too long');
  }

  #countBytes(size: number, path: Uint8Array): void {
    if (size > this.#limits.maxFileBytes) throw new CaptureError('file_too_large', `a file has ${size} bytes`, path);
    this.#totalBytes += size;
    if (this.#totalBytes > this.#limits.maxTotalBytes) throw new CaptureError('tree_too_large', 'the files together are too large', path);
  }
}

function skipReason(entry: ProposedEntry, normal: NormalPath): SkipReason | undefined {
  if (normal.components.some(isGitName)) return 'git_metadata';
  if (entry.type === 'special') return 'special_file';
  if (entry.type === 'unknown') return 'unknown_type';
  const last = normal.components.at(-1);
  return entry.type === 'link' && last !== undefined && isGitmodulesName(last) ? 'gitmodules_link' : undefined;
}

/** The folders that lead to a path, outermost first. */
function* foldersOf(key: string): Generator<string> {
  for (let at = key.indexOf('/'); at !== -1; at = key.indexOf('/', at + 1)) yield key.slice(0, at);
}

function underNoFolder(path: Uint8Array): CaptureError {
  return new CaptureError('path_under_non_directory', 'a name passes through an entry that is no folder', path);
}
