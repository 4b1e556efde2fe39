import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { packTree } from '@firecrew/workspace';
import type { OutgoingTree, TreeExclusion } from '../port/driver.ts';
import { treeSelectionOf } from '../tree-transfer/select-tree.ts';
import { trailerOf } from '../tree-transfer/trailer.ts';

/**
 * Packs a folder of a stopped guest's disk. Every component below the disk's root must be a real folder: a link could lead
 * anywhere on the host. Throws `rescue_refused`.
 */
export async function rescueTree(vmId: string, root: string, path: string, exclude: TreeExclusion): Promise<OutgoingTree> {
  const refuse = (why: string): CodedError =>
    new CodedError('rescue_refused', `${JSON.stringify(path)} of VM ${vmId} cannot be read: ${why}.`, {
      id: vmId,
      action: 'Ask for a folder of the guest by its real path.',
    });
  const parts = path.split('/').filter((part) => part !== '');
  if (!path.startsWith('/') || parts.length === 0 || parts.some((part) => part === '.' || part === '..' || part.includes('\0'))) {
    throw refuse('it is no plain absolute path');
  }
  let folder = root;
  for (const part of parts) {
    folder = join(folder, part);
    const stats = await lstat(folder).catch(() => undefined);
    if (stats === undefined) throw refuse(`${part} is missing`);
    if (!stats.isDirectory()) throw refuse(`${part} is no folder`);
  }
  const { stream, done } = packTree(folder, treeSelectionOf(exclude));
  return { stream, trailer: async () => trailerOf(folder, await done) };
}
