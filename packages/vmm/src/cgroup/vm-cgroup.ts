import { constants, readFileSync } from 'node:fs';
import { appendFile, open, readdir, readFile, rmdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { codeOf } from '@firecrew/base';
import { machineIdPrefix } from '../processes/machine-id.ts';

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

/** Ends what still runs in the group of a VM, and removes it; false when it is still there. */
export async function removeGroup(group: string): Promise<boolean> {
  await killGroup(group);
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

/** Every process of it, whatever it made of its environment. Kernels before 5.14 have no such file; their processes are found by their mark. */
async function killGroup(group: string): Promise<void> {
  const handle = await open(join(group, 'cgroup.kill'), constants.O_WRONLY).catch(() => undefined);
  await handle?.write('1').catch(() => undefined);
  await handle?.close();
}

/** File of a VM's folder that names the groups of its VMMs, one a line. */
const NOTES_FILE = 'groups';
const MAX_NOTED_GROUPS = 16;

/** Writes down, before it is made, which group a VMM will have: who cleans up after a dead host process finds it there. */
export async function noteGroup(vmFolder: string, group: string): Promise<void> {
  await appendFile(join(vmFolder, NOTES_FILE), `${group}\n`, { mode: 0o600 });
}

/**
 * Ends and removes the groups of a VM whose host process is gone. Gives those that are still there. A line that is no group of this attempt
 * is passed over.
 */
export async function removeNotedGroups(vmFolder: string, attemptMarker: string): Promise<string[]> {
  const notes = await readFile(join(vmFolder, NOTES_FILE), 'utf8').catch(() => '');
  const left: string[] = [];
  for (const group of notes.split('\n').slice(0, MAX_NOTED_GROUPS)) {
    if (!basename(group).startsWith(machineIdPrefix(attemptMarker)) || !OWN_NAME.test(basename(group))) continue;
    if (!(await removeGroup(group))) left.push(group);
  }
  return left;
}
