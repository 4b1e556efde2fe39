import { MAX_LINK_HOPS, MAX_PATH_BYTES, MAX_PATH_DEPTH } from '../limits.ts';
import { imageTooLarge, refusedEntry } from '../tar/refusals.ts';
import type { ByteText, EntryMetadata } from '../tar/tar-entry.ts';

/** Where the content of a file lies: which layer, and where in its archive. */
export interface ContentPlace {
  readonly layer: number;
  readonly offset: number;
  readonly size: number;
}

/** A file, link, device or FIFO. Hard links are one such object under several names. */
export interface ImageFile {
  readonly type: 'file' | 'symbolic-link' | 'character-device' | 'block-device' | 'fifo';
  readonly metadata: EntryMetadata;
  /** Of a file. */
  readonly content: ContentPlace | undefined;
  /** Target of a symbolic link: data, never followed on the host. */
  readonly target: ByteText;
  readonly deviceMajor: number;
  readonly deviceMinor: number;
}

export interface ImageFolder {
  readonly type: 'directory';
  metadata: EntryMetadata;
  readonly children: Map<ByteText, ImageNode>;
}

export type ImageNode = ImageFile | ImageFolder;

/** What a folder gets that no layer has an entry for. */
export const IMPLIED_FOLDER: EntryMetadata = { mode: 0o755, uid: 0, gid: 0, mtime: 0, xattrs: new Map() };

/** A folder without children. */
export function newFolder(metadata: EntryMetadata = IMPLIED_FOLDER): ImageFolder {
  return { type: 'directory', metadata, children: new Map() };
}

/** Counts the steps of all walks through one tree, since chains of links multiply them. */
export class StepBudget {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws `image_too_large` when the budget is spent. */
  take(): void {
    this.#taken += 1;
    if (this.#taken > this.#most) throw imageTooLarge(`the paths of the image take more than ${this.#most} steps through its links`);
  }
}

/**
 * The folder that the parts lead to, with links inside the image followed as the kernel would with this root, and never above it;
 * undefined where there is none. Throws `entry_refused`, `image_too_large`.
 */
export function findFolder(root: ImageFolder, parts: readonly ByteText[], budget: StepBudget): ImageFolder | undefined {
  return walk(root, parts, budget, () => undefined);
}

/** The same, with missing folders made on the way. */
export function makeFolder(root: ImageFolder, parts: readonly ByteText[], budget: StepBudget): ImageFolder {
  const found = walk(root, parts, budget, (parent, name) => {
    const made = newFolder();
    parent.children.set(name, made);
    return made;
  });
  if (found === undefined) throw refusedEntry('an entry below something that is no folder', parts.join('/'));
  return found;
}

type Missing = (parent: ImageFolder, name: ByteText) => ImageFolder | undefined;

function walk(root: ImageFolder, parts: readonly ByteText[], budget: StepBudget, missing: Missing): ImageFolder | undefined {
  const above: { readonly folder: ImageFolder; readonly bytes: number }[] = [];
  const ahead = [...parts].reverse();
  let here = { folder: root, bytes: 0 };
  let hops = 0;
  for (let part = ahead.pop(); part !== undefined; part = ahead.pop()) {
    budget.take();
    if (part === '' || part === '.') continue;
    if (part === '..') {
      here = above.pop() ?? here;
      continue;
    }
    const next = here.folder.children.get(part) ?? missing(here.folder, part);
    if (next?.type === 'symbolic-link') {
      hops += 1;
      if (hops > MAX_LINK_HOPS) throw refusedEntry(`a path with more than ${MAX_LINK_HOPS} links`, parts.join('/'));
      if (next.target.startsWith('/')) {
        above.length = 0;
        here = { folder: root, bytes: 0 };
      }
      ahead.push(...next.target.split('/').reverse());
    } else if (next?.type === 'directory') {
      above.push(here);
      here = { folder: next, bytes: here.bytes + part.length + 1 };
      if (here.bytes > MAX_PATH_BYTES || above.length > MAX_PATH_DEPTH)
        throw refusedEntry('a path that is too long once its links are followed', parts.join('/'));
    } else return undefined;
  }
  return here.folder;
}
