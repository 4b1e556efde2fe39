import { lstat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { CodedError } from '@firecrew/base';
import { packTree } from '@firecrew/workspace';
import type { OutgoingTree, TreeExclusion } from '../port/driver.ts';
import { NO_EXCLUSION, treeSelectionOf } from '../tree-transfer/select-tree.ts';
import { checkReceived, trailerOf } from '../tree-transfer/trailer.ts';
import { guestFolder } from './guest-layout.ts';

/**
 * Packs a folder of the disk that a guest of the process driver left in its VM's folder; `path` is as the guest saw it. Nothing may
 * run there any more. Every component must be a real folder: a link could lead anywhere on the host. Throws `rescue_refused`.
 */
export async function rescueFromFolder(
  vmId: string,
  vmFolder: string,
  path: string,
  exclude: TreeExclusion = NO_EXCLUSION,
): Promise<OutgoingTree> {
  const { root } = guestFolder(vmFolder);
  const inGuest = path.startsWith(`${root}/`) ? path.slice(root.length) : path;
  const refuse = (why: string): CodedError =>
    new CodedError('rescue_refused', `${JSON.stringify(path)} of VM ${vmId} cannot be read: ${why}.`, {
      id: vmId,
      action: 'Ask for a folder of the guest by its real path.',
    });
  const parts = inGuest.split('/').filter((part) => part !== '');
  if (!inGuest.startsWith('/') || parts.length === 0 || parts.some((part) => part === '.' || part === '..' || part.includes('\0'))) {
    throw refuse('it is no plain absolute path');
  }
  let folder = vmFolder;
  for (const part of [basename(root), ...parts]) {
    folder = join(folder, part);
    const stats = await lstat(folder).catch(() => undefined);
    if (stats === undefined) throw refuse(`${part} is missing`);
    if (!stats.isDirectory()) throw refuse(`${part} is no folder`);
  }
  const { chunks, done } = packTree(folder, treeSelectionOf(exclude));
  return {
    archive: chunks,
    trailer: async (received) => {
      const trailer = await trailerOf(folder, await done);
      checkReceived(path, trailer, received);
      return trailer;
    },
  };
}
