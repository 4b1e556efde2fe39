import { closeSync, constants, copyFileSync, fchmodSync, openSync, symlinkSync, writeSync } from 'node:fs';
import { FolderChain, inFolder } from './folder-handles.ts';
import type { TreeSink } from './tree-sink.ts';

const SLASH = 0x2f;
const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Writes accepted entries into a fresh folder that nobody else writes to. Modes become 0644 or 0755, nothing else is kept. */
export class TreeWriter implements TreeSink {
  readonly #root: Buffer;
  readonly #chain: FolderChain;
  #file: number | undefined;

  constructor(root: string) {
    this.#root = Buffer.from(root);
    this.#chain = new FolderChain(this.#root);
  }

  directory(path: Uint8Array): void {
    this.#chain.enter(components(path));
  }

  link(path: Uint8Array, target: Uint8Array): void {
    symlinkSync(Buffer.from(target), this.#place(path));
  }

  openFile(path: Uint8Array, _size: number, executable: boolean): void {
    this.#file = openSync(this.#place(path), CREATE, 0o600);
    fchmodSync(this.#file, executable ? 0o755 : 0o644);
  }

  write(bytes: Uint8Array): void {
    if (this.#file === undefined) return;
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
  }

  closeFile(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  copy(path: Uint8Array, source: Uint8Array): void {
    // The source is a regular file that this writer made in its own folder.
    const from = Buffer.concat([this.#root, Buffer.from('/'), source]);
    copyFileSync(from, this.#place(path), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  }

  /** Lets go of every handle; call it on success and on failure. */
  close(): void {
    this.closeFile();
    this.#chain.close();
  }

  #place(path: Uint8Array): Buffer {
    const parts = components(path);
    const name = parts.pop() ?? path;
    return inFolder(this.#chain.enter(parts), name);
  }
}

function components(path: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (let at = path.indexOf(SLASH); at !== -1; at = path.indexOf(SLASH, from)) {
    parts.push(path.subarray(from, at));
    from = at + 1;
  }
  parts.push(path.subarray(from));
  return parts;
}
