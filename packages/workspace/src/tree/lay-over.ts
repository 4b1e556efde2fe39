import { lstatSync, renameSync, unlinkSync } from 'node:fs';
import { codeOf } from '@firecrew/base';
import { closeFolder, type FolderHandle, inFolder, listFolder, openFolder, type Path } from './folder-handles.ts';
import { removeTree } from './remove-tree.ts';

/**
 * Moves what lies in `from` over what lies in `to`: folders are merged, and of two other things with one name that of `from` stays. Nothing is
 * followed. `to` must be nobody else's meanwhile. Gives how many things of `to` were removed for it; throws Node's errors, with a part moved.
 */
export async function layOver(from: Path, to: Path): Promise<number> {
  const [source, target] = [openFolder(from), openFolder(to)];
  try {
    let replaced = 0;
    for (const { name } of listFolder(source)) replaced += await layEntry(source, target, name);
    return replaced;
  } finally {
    closeFolder(source);
    closeFolder(target);
  }
}

async function layEntry(source: FolderHandle, target: FolderHandle, name: string): Promise<number> {
  const [from, to] = [inFolder(source, name), inFolder(target, name)];
  const there = typeOf(to);
  if (there === 'folder' && typeOf(from) === 'folder') return await layOver(from, to);
  if (there === 'folder') await removeAll(to);
  else if (there === 'other') unlinkSync(to);
  renameSync(from, to);
  return there === 'absent' ? 0 : 1;
}

async function removeAll(path: Path): Promise<void> {
  const left = await removeTree(path);
  if (left !== undefined) throw new Error('a folder could not be removed');
}

function typeOf(path: Path): 'folder' | 'other' | 'absent' {
  try {
    return lstatSync(path).isDirectory() ? 'folder' : 'other';
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'absent';
    throw error;
  }
}
