import { closeSync, constants, lstatSync, openSync, readlinkSync, readSync, type Stats, unlinkSync } from 'node:fs';
import { readableName, type TreeLimits } from '@firecrew/artifact-capture';
import { codeOf } from '@firecrew/base';
import { bytesOfKey, closeFolder, type FolderHandle, inFolder, openFolder, type Path } from './folder-handles.ts';
import { readEvents } from './read-archive.ts';
import { type ByteSource, placeEntry, type TreeSink } from './tree-sink.ts';

/** Paths that differ and are named. */
export const MAX_NAMED_DIFFERENCES = 100;
const OPEN_TO_COMPARE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** What came of taking a tree out of a folder; folders of the tree count nowhere. */
export interface TakenOut {
  /** Files and links that were as in the tree, and are gone now. */
  readonly removed: number;
  readonly absent: number;
  /** What lies in the place of a file or link and is another; it stays. */
  readonly differing: number;
  /** Some of those, at most {@link MAX_NAMED_DIFFERENCES}. */
  readonly named: readonly string[];
}

/**
 * Compares an archive with a folder and removes every file and link that is the same there: kind, executable or not, and content. Nothing is
 * followed, and nothing outside the folder is touched. Folders stay.
 * @throws CodedError `archive_refused`, `archive_cut`, `unpack_failed`; a part is then removed.
 */
export async function takeTreeOut(source: ByteSource, folder: string, limits: Partial<TreeLimits> = {}): Promise<TakenOut> {
  const sink = new Subtraction(folder);
  try {
    await readEvents(source, limits, (event) => {
      if (event.kind === 'data') sink.write(event.bytes);
      else if (event.kind === 'entry-end') sink.closeFile();
      else if (event.kind === 'entry') placeEntry(sink, Buffer.from(event.entry.path).toString('latin1'), event.entry);
    });
    return sink.result();
  } finally {
    sink.close();
  }
}

interface OpenFile {
  readonly key: string;
  readonly path: Path;
  readonly fd: number;
  isSame: boolean;
  at: number;
}

class Subtraction implements TreeSink {
  readonly #root: FolderHandle;
  readonly #named: string[] = [];
  #parent: { readonly key: string; readonly folder: FolderHandle | undefined } | undefined;
  #file: OpenFile | undefined;
  #removed = 0;
  #absent = 0;
  #differing = 0;

  constructor(folder: string) {
    this.#root = openFolder(folder);
  }

  directory(): void {}

  link(key: string, target: Uint8Array): void {
    const found = this.#find(key);
    if (found === undefined) return;
    const isSame = found.stats.isSymbolicLink() && readlinkSync(found.path, 'buffer').equals(target);
    this.#count(key, found.path, isSame);
  }

  openFile(key: string, size: number, executable: boolean): void {
    const found = this.#find(key);
    if (found === undefined) return;
    const { path, stats } = found;
    if (stats.isFile() && stats.size === size && isExecutable(stats) === executable)
      this.#file = { key, path, fd: openSync(path, OPEN_TO_COMPARE), isSame: true, at: 0 };
    else this.#count(key, path, false);
  }

  write(bytes: Uint8Array): void {
    const file = this.#file;
    if (file === undefined) return;
    if (file.isSame) file.isSame = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).equals(readAt(file.fd, file.at, bytes.length));
    file.at += bytes.length;
  }

  closeFile(): void {
    const file = this.#file;
    if (file === undefined) return;
    this.#file = undefined;
    closeSync(file.fd);
    this.#count(file.key, file.path, file.isSame);
  }

  /** The archives of this package hold no copies: one of another could not be compared once its source is gone. */
  copy(key: string): void {
    const found = this.#find(key);
    if (found !== undefined) this.#count(key, found.path, false);
  }

  result(): TakenOut {
    return { removed: this.#removed, absent: this.#absent, differing: this.#differing, named: this.#named };
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file.fd);
    this.#file = undefined;
    this.#leaveParent();
    closeFolder(this.#root);
  }

  #count(key: string, path: Path, isSame: boolean): void {
    if (isSame) {
      unlinkSync(path);
      this.#removed += 1;
      return;
    }
    this.#differing += 1;
    if (this.#named.length < MAX_NAMED_DIFFERENCES) this.#named.push(readableName(bytesOfKey(key)));
  }

  #find(key: string): { readonly path: Path; readonly stats: Stats } | undefined {
    const slash = key.lastIndexOf('/');
    const parent = this.#enter(key.slice(0, Math.max(0, slash)));
    const path = parent === undefined ? undefined : inFolder(parent, key.slice(slash + 1));
    const stats = path === undefined ? undefined : lstatIfThere(path);
    if (path !== undefined && stats !== undefined) return { path, stats };
    this.#absent += 1;
    return undefined;
  }

  /** The folder of this path below the root, each step of it a folder and no link; undefined where one is missing. */
  #enter(key: string): FolderHandle | undefined {
    if (key === '') return this.#root;
    if (this.#parent?.key === key) return this.#parent.folder;
    this.#leaveParent();
    let at: FolderHandle | undefined = this.#root;
    for (const name of key.split('/')) {
      const next: FolderHandle | undefined = openIfThere(inFolder(at, name));
      if (at !== this.#root) closeFolder(at);
      at = next;
      if (at === undefined) break;
    }
    this.#parent = { key, folder: at };
    return at;
  }

  #leaveParent(): void {
    if (this.#parent?.folder !== undefined) closeFolder(this.#parent.folder);
    this.#parent = undefined;
  }
}

function readAt(fd: number, at: number, length: number): Buffer {
  const buffer = Buffer.alloc(length);
  let done = 0;
  for (let got = 1; done < length && got > 0; done += got) got = readSync(fd, buffer, done, length - done, at + done);
  return buffer.subarray(0, done);
}

function isExecutable({ mode }: Stats): boolean {
  return (mode & 0o100) !== 0;
}

function lstatIfThere(path: Path): Stats | undefined {
  try {
    return lstatSync(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function openIfThere(path: Path): FolderHandle | undefined {
  try {
    return openFolder(path);
  } catch (error) {
    // No folder is there, or something else in its place: then nothing of the tree lies below it.
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(codeOf(error) ?? '')) return undefined;
    throw error;
  }
}
