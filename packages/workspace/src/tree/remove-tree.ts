import { chmodSync, lstatSync, rmdirSync, unlinkSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { closeFolder, inFolder, listFolder, openFolder, type Path } from './folder-handles.ts';

/** Entries removed before the process gets its turn: removing is synchronous. */
const TURN_ENTRIES = 500;

/**
 * Removes a folder that nobody else uses any more, never through a link; folders whose mode locks their owner out are
 * opened up first. Returns the path when something of it is left.
 */
export async function removeTree<Where extends Path>(path: Where): Promise<Where | undefined> {
  try {
    await removeFolder(path, { left: TURN_ENTRIES });
    return undefined;
  } catch {
    openUp(path);
  }
  try {
    await rm(path, { recursive: true, force: true });
    return undefined;
  } catch {
    return path;
  }
}

/** One call for each file: asking the thread pool about each takes several times as long. */
async function removeFolder(path: Path, turn: { left: number }): Promise<void> {
  const folder = openFolder(path);
  try {
    for (const child of listFolder(folder)) {
      const name = inFolder(folder, child.name);
      if (child.isDirectory()) await removeFolder(name, turn);
      else unlinkSync(name);
      turn.left -= 1;
      if (turn.left > 0) continue;
      turn.left = TURN_ENTRIES;
      await new Promise((resume) => setImmediate(resume));
    }
  } finally {
    closeFolder(folder);
  }
  rmdirSync(path);
}

function openUp(path: Path): void {
  try {
    if (!lstatSync(path).isDirectory()) return;
    chmodSync(path, 0o700);
    const folder = openFolder(path);
    try {
      for (const child of listFolder(folder)) {
        if (child.isDirectory()) openUp(inFolder(folder, child.name));
      }
    } finally {
      closeFolder(folder);
    }
  } catch {
    // What cannot be opened up is what the second removal reports.
  }
}
