import { constants } from 'node:fs';
import { type FileHandle, lchown, lstat, open, readdir } from 'node:fs/promises';
import type { Account } from './server-account.ts';

const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Gives a folder of root's and all that lies in it to `account`; nothing is done to one that belongs to it already. No link is followed: each
 * name is looked up in the folder that is open, never by a path from above. The folder itself comes last, so that nobody but root is inside
 * meanwhile, and a hand-over that was cut short is begun anew.
 */
export async function takeOver(folder: string, account: Account): Promise<boolean> {
  const handle = await open(folder, FOLDER_ONLY);
  try {
    if ((await handle.stat()).uid === account.uid) return false;
    await takeOverEntries(handle, account);
    await handle.chown(account.uid, account.gid);
    return true;
  } finally {
    await handle.close();
  }
}

async function takeOverEntries(folder: FileHandle, account: Account): Promise<void> {
  const prefix = Buffer.from(`/proc/self/fd/${folder.fd}/`);
  for (const name of await readdir(prefix, { encoding: 'buffer' })) {
    const path = Buffer.concat([prefix, name]);
    if ((await lstat(path)).isDirectory()) {
      const inside = await open(path, FOLDER_ONLY);
      try {
        await takeOverEntries(inside, account);
        await inside.chown(account.uid, account.gid);
      } finally {
        await inside.close();
      }
    } else await lchown(path, account.uid, account.gid);
  }
}
