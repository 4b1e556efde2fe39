import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';
import type { HostUsers } from './judge-uid.ts';

/** Places that tell of the users of a host. */
export interface HostUserPlaces {
  readonly passwd: string;
  readonly proc: string;
  /** Folders below which the folders of VMs are, at most two levels deep. */
  readonly vmRoots: readonly string[];
}

/** Reads what is known of the users of this host. Throws where one of the places cannot be read: that is not "nobody". */
export function readHostUsers({ passwd, proc, vmRoots }: HostUserPlaces): HostUsers {
  return {
    accounts: new Set(accountsOf(readFileSync(passwd, 'latin1'))),
    running: new Set(readdirSync(proc).flatMap((name) => (/^[1-9][0-9]*$/.test(name) ? usersOf(join(proc, name, 'status')) : []))),
    folders: new Set(vmRoots.flatMap((root) => groupsBelow(root, 2))),
  };
}

function accountsOf(passwd: string): number[] {
  return passwd.split('\n').flatMap((line) => {
    const uid = line.split(':')[2];
    return uid === undefined || !/^[0-9]+$/.test(uid) ? [] : [Number(uid)];
  });
}

/** The real, effective, saved and file system user of a process; none when it is gone. */
function usersOf(status: string): number[] {
  const text = whileThere(() => readFileSync(status, 'latin1'), '');
  return (/^Uid:\t(.*)$/m.exec(text)?.[1] ?? '')
    .split('\t')
    .filter((uid) => uid !== '')
    .map(Number);
}

function groupsBelow(folder: string, depth: number): number[] {
  if (depth === 0) return [];
  const names = whileThere(() => readdirSync(folder), []);
  return names.flatMap((name) => {
    const path = join(folder, name);
    const stats = whileThere(() => lstatSync(path), undefined);
    return stats?.isDirectory() === true ? [stats.gid, ...groupsBelow(path, depth - 1)] : [];
  });
}

/** Processes and folders go while they are looked at. */
function whileThere<T>(read: () => T, gone: T): T {
  try {
    return read();
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'ENOTDIR'].includes(codeOf(error) ?? '')) return gone;
    throw error;
  }
}
