import { execFile } from 'node:child_process';
import type { Stats } from 'node:fs';
import { chmod, chown, link, mkdir, stat, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import type { SharedFile } from '@firecrew/rootfs';
import type { RunPlaces } from './run-places.ts';

/** Time for the copy of one file, in `ms`. */
const COPY_TIMEOUT_MS = 300_000;
/** Mode bits that would let anybody but root change a file, and the one that lets the VM's user read it. */
const WRITABLE_BY_OTHERS = 0o022;
const READABLE_BY_OTHERS = 0o004;

/** One jail: a folder that is Firecracker's whole file system. */
export interface Jail {
  readonly id: string;
  readonly chrootBase: string;
  readonly root: string;
  /** Where the jailer writes the id of the process. */
  readonly pidFile: string;
}

/** The jail of an id; `firecracker` is the program that runs in it. */
export function jailOf(vmFolder: string, id: string, firecracker: string): Jail {
  const chrootBase = join(vmFolder, 'j');
  const name = basename(firecracker);
  const root = join(chrootBase, name, id, 'root');
  return { id, chrootBase, root, pidFile: join(root, `${name}.pid`) };
}

/**
 * Makes an empty jail, and the short link by which the host reaches its sockets. Throws `jail_failed` for one that is there: device
 * nodes of an earlier run would end the jailer, and its files are not to be trusted.
 */
export async function makeJail(jail: Jail, run: RunPlaces): Promise<void> {
  try {
    // The folders above pass the VM's user through; the jailer gives the root itself to it.
    await mkdir(join(jail.root, '..', '..'), { recursive: true, mode: 0o711 });
    await mkdir(join(jail.root, '..'), { mode: 0o711 });
    await mkdir(jail.root, { mode: 0o711 });
    await symlink(jail.root, run.folder);
  } catch (cause) {
    const why = codeOf(cause) === 'EEXIST' ? 'it is there from an earlier run' : messageOf(cause);
    throw jailFailed(jail.id, `${jail.root} cannot be made: ${why}`, cause);
  }
}

/** How a file came into a jail. */
export type Placing = 'linked' | 'copied';

/**
 * Puts a read-only file of the store into a jail: by hard link where that is on the same file system and nobody but root can change it,
 * else as a copy of root's. Throws `jail_failed`, also when the path leads to another file than the one that was checked.
 */
export async function placeShared(jail: Jail, name: string, file: SharedFile): Promise<Placing> {
  const target = join(jail.root, name);
  const held = await file.handle.stat();
  try {
    if (isSafeToLink(held) && (await tryLink(file.path, target))) {
      const linked = await stat(target);
      if (linked.dev === held.dev && linked.ino === held.ino) return 'linked';
      throw new Error('its path leads to another file now');
    }
    await copyFile(file.handle.fd, target);
    await chmod(target, 0o444);
    await chown(target, 0, 0);
    return 'copied';
  } catch (cause) {
    throw jailFailed(jail.id, `${name} cannot be put into it: ${messageOf(cause)}`, cause);
  }
}

/** Puts a file of this VM's own folder, made for its user, into its jail. Throws `jail_failed`. */
export async function placeOwn(jail: Jail, name: string, path: string): Promise<void> {
  try {
    await link(path, join(jail.root, name));
  } catch (cause) {
    throw jailFailed(jail.id, `${name} cannot be put into it: ${messageOf(cause)}`, cause);
  }
}

function isSafeToLink({ uid, mode }: Stats): boolean {
  return uid === 0 && (mode & WRITABLE_BY_OTHERS) === 0 && (mode & READABLE_BY_OTHERS) !== 0;
}

async function tryLink(path: string, target: string): Promise<boolean> {
  try {
    await link(path, target);
    return true;
  } catch (error) {
    // A layer may be collected while it is used: what is held open is copied.
    if (codeOf(error) === 'EXDEV' || codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Sparse, and shared where the file system can: Node's own copy would be dense. */
function copyFile(fd: number, target: string): Promise<void> {
  const options = { env: { PATH: '/usr/local/bin:/usr/bin:/bin' }, timeout: COPY_TIMEOUT_MS, killSignal: 'SIGKILL' } as const;
  const args = ['--reflink=auto', '--sparse=always', '--', `/proc/${process.pid}/fd/${fd}`, target];
  return new Promise((resolve, reject) => {
    execFile('cp', args, options, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else reject(stderr.trim() === '' ? error : new Error(stderr.trim()));
    });
  });
}

export function jailFailed(id: string, why: string, cause?: unknown): CodedError {
  return new CodedError('jail_failed', `The jail ${id} cannot be used: ${why}.`, {
    id,
    action: 'See that the home of the node is on a local disk with room, without `nodev` and `noexec`, then try again.',
    ...(cause === undefined ? {} : { cause }),
  });
}
