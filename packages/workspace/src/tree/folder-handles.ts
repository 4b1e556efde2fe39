import { closeSync, constants, existsSync, fchmodSync, mkdirSync, openSync } from 'node:fs';

const OPEN_FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const SLASH = Buffer.from('/');
/** Folders that this package makes are readable by all and writable by their owner; their parent is what guards them. */
export const FOLDER_MODE = 0o755;

/** An open folder; names are joined to `base`, which on Linux goes through the handle, so no path is resolved twice. */
export interface FolderHandle {
  readonly fd: number;
  readonly base: Buffer;
}

/** Opens a folder; its last component is not followed unless `followLast`. Throws Node's error when it is no folder. */
export function openFolder(path: Buffer, followLast = false): FolderHandle {
  const fd = openSync(path, followLast ? constants.O_RDONLY | constants.O_DIRECTORY : OPEN_FOLDER);
  const viaHandle = `/proc/self/fd/${fd}`;
  return { fd, base: existsSync(viaHandle) ? Buffer.from(viaHandle) : path };
}

/** Closes what {@link openFolder} gave. */
export function closeFolder(folder: FolderHandle): void {
  closeSync(folder.fd);
}

/** A name inside an open folder. */
export function inFolder(folder: FolderHandle, name: Uint8Array): Buffer {
  return Buffer.concat([folder.base, SLASH, name]);
}

/** The chain of open folders from a root to where the last entry went: entries in tree order open each folder once. */
export class FolderChain {
  readonly #root: FolderHandle;
  readonly #open: { readonly name: Uint8Array; readonly folder: FolderHandle }[] = [];

  /** @param root a folder that was just made; the process's mask may have narrowed its mode, so it is set. */
  constructor(root: Buffer) {
    this.#root = openFolder(root);
    fchmodSync(this.#root.fd, FOLDER_MODE);
  }

  /** The folder with these components below the root; missing ones are made. */
  enter(components: readonly Uint8Array[]): FolderHandle {
    let shared = 0;
    for (const step of this.#open) {
      const wanted = components[shared];
      if (wanted === undefined || Buffer.compare(step.name, wanted) !== 0) break;
      shared += 1;
    }
    this.#closeFrom(shared);
    for (const name of components.slice(shared)) {
      const parent = this.#open.at(-1)?.folder ?? this.#root;
      this.#open.push({ name, folder: makeFolder(inFolder(parent, name)) });
    }
    return this.#open.at(-1)?.folder ?? this.#root;
  }

  close(): void {
    this.#closeFrom(0);
    closeFolder(this.#root);
  }

  #closeFrom(depth: number): void {
    for (const step of this.#open.splice(depth).reverse()) closeFolder(step.folder);
  }
}

function makeFolder(path: Buffer): FolderHandle {
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
