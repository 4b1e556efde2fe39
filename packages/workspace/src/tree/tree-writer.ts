import { closeSync, constants, copyFileSync, fchmodSync, openSync, symlinkSync, writeSync } from 'node:fs';
import { bytesOfKey, FolderChain, inFolder, type Path } from './folder-handles.ts';
import type { TreeSink } from './tree-sink.ts';

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Writes accepted entries into a fresh folder that nobody else writes to. Modes become 0644 or 0755, nothing else is kept. */
export class TreeWriter implements TreeSink {
  readonly #root: string;
  readonly #chain: FolderChain;
  #file: number | undefined;

  constructor(root: string) {
    this.#root = root;
    this.#chain = new FolderChain(root);
  }

  directory(key: string): void {
    this.#chain.enter(key);
  }

  link(key: string, target: Uint8Array): void {
    symlinkSync(Buffer.from(target), this.#place(key));
  }

  openFile(key: string, _size: number, executable: boolean): void {
    const mode = executable ? 0o755 : 0o644;
    this.#file = openSync(this.#place(key), CREATE, mode);
    if (this.#chain.isMasked) fchmodSync(this.#file, mode);
  }

  write(bytes: Uint8Array): void {
    if (this.#file === undefined) return;
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
  }

  closeFile(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  copy(key: string, source: string): void {
    // The source is a regular file that this writer made in its own folder.
    const from = Buffer.concat([Buffer.from(`${this.#root}/`), bytesOfKey(source)]);
    copyFileSync(from, this.#place(key), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  }

  /** Lets go of every handle; call it on success and on failure. */
  close(): void {
    this.closeFile();
    this.#chain.close();
  }

  #place(key: string): Path {
    const slash = key.lastIndexOf('/');
    return inFolder(this.#chain.enter(key.slice(0, Math.max(0, slash))), key.slice(slash + 1));
  }
}
