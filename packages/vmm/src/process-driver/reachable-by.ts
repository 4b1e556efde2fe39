import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { GuestOwner } from '../port/driver.ts';

/** Whether a user without supplementary groups may pass through every folder on the way to `path`. What cannot be looked at is not reachable. */
export async function isReachableBy(path: string, owner: GuestOwner): Promise<boolean> {
  for (let at = dirname(path); ; at = dirname(at)) {
    const stats = await stat(at).catch(() => undefined);
    if (stats === undefined) return false;
    const bit = stats.uid === owner.uid ? 0o100 : stats.gid === owner.gid ? 0o010 : 0o001;
    if ((stats.mode & bit) === 0) return false;
    if (at === '/') return true;
  }
}
