import { constants } from 'node:fs';
import { chmod, open, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError } from '@firecrew/base';
import type { ArtifactFile } from './artifact-manifest.ts';
import { hashHandle } from './hash-file.ts';

/** Mode of the files of an artifact, and of the folders that lead to them: accounts of VMs read both. */
export const READ_ONLY = 0o444;
export const WALKABLE = 0o755;

/** Makes every file below a folder read-only and durable; gives name, size and digest of each, sorted. Links and specials are refused. */
export async function sealFiles(target: string, signal?: AbortSignal): Promise<ArtifactFile[]> {
  const files: ArtifactFile[] = [];
  for (const entry of await readdir(target, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory()) {
      await chmod(path, WALKABLE);
      continue;
    }
    const name = path.slice(target.length + 1);
    if (!entry.isFile()) throw new CodedError('image_store_failed', `the builder left ${name}, which is no plain file`, { id: name });
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      await handle.chmod(READ_ONLY);
      await handle.sync();
      files.push({ name, ...(await hashHandle(handle, signal)) });
    } finally {
      await handle.close();
    }
    if (dirname(path) !== target) await sync(dirname(path));
  }
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Whether two lists hold the same files, in whatever order. */
export function sameFiles(found: readonly ArtifactFile[], wanted: readonly ArtifactFile[]): boolean {
  const line = ({ name, sha256, sizeBytes }: ArtifactFile): string => `${name} ${sha256} ${sizeBytes}`;
  return found.map(line).sort().join('\n') === wanted.map(line).sort().join('\n');
}

/** Makes a file or a folder durable. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
