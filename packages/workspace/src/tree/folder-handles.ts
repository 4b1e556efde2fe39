import { closeSync, constants, type Dirent, existsSync, fchmodSync, fstatSync, mkdirSync, openSync, readdirSync } from 'node:fs';

const OPEN_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const SLASH = Buffer.from('/');
/** Folders that this package makes are readable by all and writable by their owner; their parent is what guards them. */
export const FOLDER_MODE = 0o755;

/** An open folder; names are joined to `base`, which on Linux goes through the handle, so no path is resolved twice. */
export interface FolderHandle {
  readonly fd: number;
  readonly base: Path;
}

/** A path as Node's calls take it: a text where all of it is ASCII, which costs them least, and else bytes. */
export type Path = string | Buffer;

const IS_ASCII = /^[\x01-\x7f]*$/;

/** Opens a folder; its last component is not followed unless `followLast`. Throws Node's error when it is no folder. */
export function openFolder(path: Path, followLast = false): FolderHandle {
  const fd = openSync(path, followLast ? constants.O_RDONLY | constants.O_DIRECTORY : OPEN_FOLDER);
  const viaHandle = `/proc/self/fd/${fd}`;
  return { fd, base: existsSync(viaHandle) ? viaHandle : path };
}

/** Closes what {@link openFolder} gave. */
export function closeFolder(folder: FolderHandle): void {
  closeSync(folder.fd);
}

/** The path of a name, one character for each of its bytes, inside an open folder. */
export function inFolder({ base }: FolderHandle, name: string): Path {
  if (typeof base === 'string' && IS_ASCII.test(name)) return `${base}/${name}`;
  return Buffer.concat([Buffer.from(base), SLASH, bytesOfKey(name)]);
}

/** What lies in an open folder, in the order of the disk; a name has one character for each of its bytes. */
export function listFolder({ base }: FolderHandle): Dirent[] {
  return readdirSync(base, { encoding: 'latin1', withFileTypes: true });
}

/** The bytes of a name or path that has one character for each. */
export function bytesOfKey(key: string): Buffer {
  return Buffer.from(key, 'latin1');
}

/** The chain of open folders from a root to where the last entry went: entries in tree order open each folder once. */
export class FolderChain {
  readonly #root: FolderHandle;
  readonly #open: { readonly name: string; readonly folder: FolderHandle }[] = [];
  #path = '';
  /** What is made here does not get the mode it is made with, by the process's mask or by a rule of the parent folder. */
  readonly isMasked: boolean;

  /** @param root a folder that was just made with `FOLDER_MODE`, which is set where it was narrowed. */
  constructor(root: string) {
    this.#root = openFolder(root);
    this.isMasked = (fstatSync(this.#root.fd).mode & 0o777) !== FOLDER_MODE;
    fchmodSync(this.#root.fd, FOLDER_MODE);
  }

  /** The folder of this path (one character for each byte) below the root, which is the empty path; missing ones are made. */
  enter(path: string): FolderHandle {
    if (path !== this.#path) this.#move(path === '' ? [] : path.split('/'));
    this.#path = path;
    return this.#open.at(-1)?.folder ?? this.#root;
  }

  close(): void {
    this.#closeFrom(0);
    closeFolder(this.#root);
  }

  #move(components: readonly string[]): void {
    // Until all of the way is open, this is no known place.
    this.#path = '/';
    let shared = 0;
    while (shared < this.#open.length && this.#open[shared]?.name === components[shared]) shared += 1;
    this.#closeFrom(shared);
    for (const name of components.slice(shared)) {
      const parent = this.#open.at(-1)?.folder ?? this.#root;
      this.#open.push({ name, folder: makeFolder(inFolder(parent, name)) });
    }
  }

  #closeFrom(depth: number): void {
    for (const step of this.#open.splice(depth).reverse()) closeFolder(step.folder);
  }
}

function makeFolder(path: Path): FolderHandle {
  let made = true;
  try {
    mkdirSync(path, FOLDER_MODE);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    made = false;
  }
  const folder = openFolder(path);
  // The process's mask may have taken bits away; the handle, unlike the name, cannot lead elsewhere.
  if (made) fchmodSync(folder.fd, FOLDER_MODE);
  return folder;
}
