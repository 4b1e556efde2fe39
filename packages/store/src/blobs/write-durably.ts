import { createHash } from 'node:crypto';
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf } from '@firecrew/base';

/** What was written. */
export interface Written {
  readonly digest: string;
  readonly bytes: number;
}

/** Writes a stream to a new file, flushed to the disk, and gives its digest; undefined once it is larger than `maxBytes`. */
export async function writeBounded(path: string, source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Written | undefined> {
  const hash = createHash('sha256');
  let bytes = 0;
  const file = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of source) {
      bytes += chunk.byteLength;
      if (bytes > maxBytes) return undefined;
      hash.update(chunk);
      await file.writeFile(chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { digest: hash.digest('hex'), bytes };
}

/** Flushes a folder's list of names to the disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Makes a folder below `root`, which must exist, and flushes every name that is new. */
export async function makeFolder(path: string, root: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
    if (codeOf(error) !== 'ENOENT' || path === root) throw error;
    await makeFolder(dirname(path), root);
    return makeFolder(path, root);
  }
  await syncFolder(dirname(path));
}
