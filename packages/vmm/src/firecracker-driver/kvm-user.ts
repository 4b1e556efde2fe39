import { stat } from 'node:fs/promises';
import type { GuestOwner } from '../port/driver.ts';

/** Mode bits by which a group may use a device. */
const GROUP_READ_WRITE = 0o060;

/** The VM's user without the jailer: with the group of the device where that may use it, since the user itself owns nothing. Never root's group. */
export async function kvmUser(owner: GuestOwner | undefined, device: string): Promise<Partial<GuestOwner>> {
  if (owner === undefined) return {};
  const found = await stat(device).catch(() => undefined);
  const isForGroup = found !== undefined && found.gid !== 0 && (found.mode & GROUP_READ_WRITE) === GROUP_READ_WRITE;
  return isForGroup ? { uid: owner.uid, gid: found.gid } : owner;
}
