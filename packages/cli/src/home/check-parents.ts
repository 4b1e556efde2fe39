import { lstatSync, realpathSync, type Stats } from 'node:fs';
import { dirname } from 'node:path';
import { CodedError } from '@firecrew/base';

const WRITABLE_BY_OTHERS = 0o002;
const WRITABLE_BY_GROUP = 0o020;
const STICKY = 0o1000;

/** Who asks: processes of root are trusted, others are not. */
export interface FolderOwner {
  readonly uid: number;
  readonly gid: number;
}

/** Why a folder that leads to the home cannot be trusted, or undefined. A sticky folder such as `/tmp` may be written by all. */
export function judgeParent(stats: Pick<Stats, 'uid' | 'mode' | 'gid'>, self: FolderOwner): string | undefined {
  if (stats.uid !== 0 && stats.uid !== self.uid) return `belongs to uid ${stats.uid}`;
  if ((stats.mode & STICKY) !== 0) return undefined;
  if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) return 'is writable by everyone';
  if ((stats.mode & WRITABLE_BY_GROUP) !== 0 && stats.gid !== self.gid) return `is writable by the group ${stats.gid}`;
  return undefined;
}

/** Checks every folder above `path` (links resolved): whoever can write to one could put another home there. Throws `home_parent_unsafe`. */
export function checkParents(path: string, self: FolderOwner): void {
  let folder = dirname(realpathSync(path));
  for (;;) {
    const fault = judgeParent(lstatSync(folder), self);
    if (fault !== undefined) {
      throw new CodedError('home_parent_unsafe', `${folder}, which leads to the home ${path}, ${fault}`, {
        id: folder,
        action: `Take the right away (chmod go-w ${folder}), or choose another home with FIRECREW_HOME.`,
      });
    }
    if (folder === '/') return;
    folder = dirname(folder);
  }
}
