import { readlinkSync } from 'node:fs';
import { lstat, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf, identifyProcess, isAlive, type ProcessIdentity } from '@firecrew/base';

const PREFIX = 'firecrew-git-';
/** Pid, pid namespace, start in ticks and boot of the process that made it, and what `mkdtemp` adds. */
const NAME = /^firecrew-git-([1-9]\d{0,9})\.(\d{1,20})\.(\d{1,20})\.([0-9a-f-]{36})\.[A-Za-z0-9]{6}$/;

/** Runs `work` with a new folder of ours under the system's temporary folder, and removes it after. */
export async function withScratchFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), `${PREFIX}${ownName()}.`));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Removes the scratch folders of processes of this user that are gone, and gives how many. A process that was killed could not remove its own;
 * those of a process that runs are left alone, whichever it is.
 */
export async function sweepScratchFolders(): Promise<number> {
  let removed = 0;
  for (const name of await readdir(tmpdir())) {
    const folder = join(tmpdir(), name);
    if (!isForsaken(name) || !(await isOurs(folder))) continue;
    // A git that outlived its process may still write there for a moment.
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    removed += 1;
  }
  return removed;
}

let own: string | undefined;
function ownName(): string {
  own ??= nameOf(identifyProcess(process.pid));
  return own;
}

function nameOf(identity: ProcessIdentity | undefined): string {
  if (identity === undefined) throw new Error('/proc does not show this very process');
  return [identity.pid, pidNamespace(), identity.startTicks, identity.bootId].join('.');
}

/** A pid says nothing about a process of another namespace, as of a container that shares the folder. */
function pidNamespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '0';
}

function isForsaken(name: string): boolean {
  const [, pid, namespace, startTicks, bootId] = NAME.exec(name) ?? [];
  if (pid === undefined || startTicks === undefined || bootId === undefined || namespace !== pidNamespace()) return false;
  return !isAlive({ pid: Number(pid), startTicks, bootId });
}

async function isOurs(folder: string): Promise<boolean> {
  try {
    const found = await lstat(folder);
    return found.isDirectory() && found.uid === process.getuid?.();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
