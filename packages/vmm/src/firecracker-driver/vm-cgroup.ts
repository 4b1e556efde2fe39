import { readFileSync } from 'node:fs';
import { readdir, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf } from '@firecrew/base';

/** Where the kernel shows cgroup v2. */
export const CGROUP_ROOT = '/sys/fs/cgroup';
/** A group is busy for a moment after its last process is gone. */
const REMOVE_TIMEOUT_MS = 5000;
const REMOVE_PAUSE_MS = 20;
/** Age from which an empty group is no longer one that is being made, in `ms`. */
export const STALE_GROUP_MS = 600_000;
/** Names of groups that are ours to remove. */
const OWN_NAME = /^fc[0-9a-f]{16}-[0-9a-f]{8}$/;

/** Whether the kernel killed a process of the group for want of memory. A group that cannot be read says no. */
export function wasOutOfMemory(group: string): boolean {
  try {
    const events = readFileSync(join(group, 'memory.events'), 'latin1');
    return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0) > 0;
  } catch {
    return false;
  }
}

/** Removes the group of a VM that is gone; false when it is still there. */
export async function removeGroup(group: string): Promise<boolean> {
  for (const from = performance.now(); ; ) {
    try {
      await rmdir(group);
      return true;
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return true;
      if (codeOf(error) !== 'EBUSY' || performance.now() - from > REMOVE_TIMEOUT_MS) return false;
      await delay(REMOVE_PAUSE_MS);
    }
  }
}

/** Removes groups of VMs whose host process died before it could. Only old ones of our names: the kernel keeps those with processes. */
export async function removeStaleGroups(parent: string, nowMs: number): Promise<void> {
  const names = await readdir(parent).catch(() => []);
  for (const name of names) {
    if (!OWN_NAME.test(name)) continue;
    const group = join(parent, name);
    const made = await stat(group).catch(() => undefined);
    if (made === undefined || nowMs - made.ctimeMs < STALE_GROUP_MS) continue;
    await rmdir(group).catch(() => undefined);
  }
}
