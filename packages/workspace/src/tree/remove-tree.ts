import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { closeFolder, inFolder, openFolder } from './folder-handles.ts';

/**
 * Removes a folder that nobody else uses any more, never through a link; folders whose mode locks their owner out are
 * opened up first. Returns the path when something of it is left.
 */
export async function removeTree(path: string): Promise<string | undefined> {
  try {
    await rm(path, { recursive: true, force: true });
    return undefined;
  } catch {
    openUp(Buffer.from(path));
  }
  try {
    await rm(path, { recursive: true, force: true });
    return undefined;
  } catch {
    return path;
  }
}

function openUp(path: Buffer): void {
  try {
    if (!lstatSync(path).isDirectory()) return;
    chmodSync(path, 0o700);
    const folder = openFolder(path);
    try {
      for (const child of readdirSync(folder.base, { encoding: 'buffer', withFileTypes: true })) {
        if (child.isDirectory()) openUp(inFolder(folder, child.name));
      }
    } finally {
      closeFolder(folder);
    }
  } catch {
    // What cannot be opened up is what the second removal reports.
  }
}
