import { lstat, mkdir, mkdtemp, rename } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { CodedError, codeOf } from '@firecrew/base';
import { FOLDER_MODE } from './folder-handles.ts';

/** Start of the name of a staging folder beside a destination; a cleaner may remove one whose maker is gone. */
export const STAGING_PREFIX = '.firecrew-staging-';

/** A fresh folder on the destination's disk: `tree` is filled, then takes the destination's place. */
export interface Staging {
  readonly folder: string;
  readonly tree: string;
  readonly destination: string;
}

/** Makes a staging folder (0700) beside the destination, whose parent must exist. */
export async function makeStaging(destination: string): Promise<Staging> {
  const target = resolve(destination);
  try {
    const folder = await mkdtemp(join(dirname(target), STAGING_PREFIX));
    const tree = join(folder, 'tree');
    await mkdir(tree, { mode: FOLDER_MODE });
    return { folder, tree, destination: target };
  } catch (error) {
    throw new CodedError('staging_failed', `no staging folder could be made beside ${target} (${codeOf(error) ?? 'error'})`, {
      id: target,
      action: 'Check that the parent folder exists, is writable, and has room.',
      cause: error,
    });
  }
}

/**
 * Puts the staged tree in the destination's place by renaming, the old one being put back when that fails.
 * @throws CodedError `swap_failed`; the destination is then as it was.
 */
export async function swapIn(staging: Staging, carryOver: readonly string[]): Promise<void> {
  const old = join(staging.folder, 'old');
  const carried: string[] = [];
  let isMoved = false;
  try {
    for (const name of carryOver) {
      if (await exists(join(staging.destination, name))) {
        await rename(join(staging.destination, name), join(staging.tree, name));
        carried.push(name);
      }
    }
    if (await exists(staging.destination)) {
      await rename(staging.destination, old);
      isMoved = true;
    }
    await rename(staging.tree, staging.destination);
  } catch (error) {
    if (isMoved) await rename(old, staging.destination);
    for (const name of carried) await rename(join(staging.tree, name), join(staging.destination, name));
    throw new CodedError('swap_failed', `the new tree could not take the place of ${staging.destination} (${codeOf(error) ?? 'error'})`, {
      id: staging.destination,
      action: 'The old tree is untouched. Check that the folder is no mount point and its parent is writable.',
      cause: error,
    });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
