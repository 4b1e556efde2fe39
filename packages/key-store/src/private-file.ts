import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, link, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from '@firecrew/base';

/** What reading a file of ours gave: its bytes, nothing there, or something that this store does not write. */
export type FileRead = { readonly status: 'found'; readonly bytes: Buffer } | { readonly status: 'absent' } | { readonly status: 'odd' };

/** Reads a file of at most `maxBytes`. A link, a folder, a pipe, a longer file, or one that others may read or write is `odd`. */
export async function readPrivateFile(file: string, maxBytes: number): Promise<FileRead> {
  let handle: FileHandle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { status: 'absent' };
    if (codeOf(error) === 'ELOOP') return { status: 'odd' };
    throw error;
  }
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > maxBytes || (stats.mode & 0o077) !== 0) return { status: 'odd' };
    const bytes = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return length > maxBytes ? { status: 'odd' } : { status: 'found', bytes: bytes.subarray(0, length) };
  } finally {
    await handle.close();
  }
}

/** Replaces a file (0600) as a whole and durably: a reader, also after a power cut, finds the old one or the new one. */
export async function replacePrivateFile(file: string, bytes: Uint8Array): Promise<void> {
  await withTemporary(file, bytes, async (temporary) => await rename(temporary, file));
}

/** Makes a file (0600) unless it is there; false when another one was first. */
export async function createPrivateFile(file: string, bytes: Uint8Array): Promise<boolean> {
  return await withTemporary(file, bytes, async (temporary) => {
    try {
      // A link appears with its whole content, or not at all.
      await link(temporary, file);
      return true;
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw error;
    } finally {
      await rm(temporary, { force: true });
    }
  });
}

/** Removes a file durably; one that is not there is removed already. */
export async function removePrivateFile(file: string): Promise<void> {
  try {
    await rm(file);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return;
    throw error;
  }
  await syncFolder(dirname(file));
}

async function withTemporary<T>(file: string, bytes: Uint8Array, place: (temporary: string) => Promise<T>): Promise<T> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const placed = await place(temporary);
    await syncFolder(folder);
    return placed;
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
