import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BootSpec, GuestOwner } from '../port/driver.ts';

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

/**
 * The spec without the folders that the guest's user cannot reach: bubblewrap ends at such a bind, since `--ro-bind-try` forgives only
 * a missing source, and a shell that looks into such a folder of the PATH says "permission denied" of every program it does not find.
 */
export async function withoutUnreachable(spec: BootSpec): Promise<BootSpec> {
  const { bindPaths, path, owner } = spec;
  if (owner === undefined) return spec;
  const folders = path.split(':');
  const binds = await Promise.all(bindPaths.map(({ source }) => isReachableBy(source, owner)));
  const walkable = await Promise.all(folders.map((folder) => isReachableBy(join(folder, 'program'), owner)));
  return {
    ...spec,
    bindPaths: bindPaths.filter((_, index) => binds[index] === true),
    path: folders.filter((_, index) => walkable[index] === true).join(':'),
  };
}
