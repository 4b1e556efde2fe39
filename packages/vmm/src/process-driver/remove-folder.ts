import { execFile } from 'node:child_process';
import { chmod, lstat, opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';

/** Folders whose modes are put right before a removal is tried again. */
export const MAX_OPENED_FOLDERS = 200_000;
const REMOVE_TIMEOUT_MS = 60_000;

/**
 * Removes a folder that a guest wrote in, never through a link: closed folders are opened first, and what is too deep for a path
 * is left to the system's `rm`. True when nothing is left.
 */
export async function removeGuestFolder(folder: string): Promise<boolean> {
  if (await tryRemove(folder)) return true;
  await openFolders(folder);
  if (await tryRemove(folder)) return true;
  await new Promise<void>((resolve) => {
    execFile('/bin/rm', ['-rf', '--', folder], { timeout: REMOVE_TIMEOUT_MS, env: {} }, () => resolve());
  });
  return isGone(folder);
}

async function tryRemove(folder: string): Promise<boolean> {
  try {
    await rm(folder, { recursive: true, force: true, maxRetries: 2 });
  } catch {
    // The next way may do.
  }
  return isGone(folder);
}

async function isGone(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return false;
  } catch (error) {
    return codeOf(error) === 'ENOENT';
  }
}

async function openFolders(root: string): Promise<void> {
  const waiting = [root];
  for (let count = 0; count < MAX_OPENED_FOLDERS; count += 1) {
    const folder = waiting.pop();
    if (folder === undefined) return;
    try {
      await chmod(folder, 0o700);
      for await (const entry of await opendir(folder)) if (entry.isDirectory()) waiting.push(join(folder, entry.name));
    } catch {
      // Reported as left over, when it is.
    }
  }
}
