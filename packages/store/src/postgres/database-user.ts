import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { CodedError } from '@firecrew/base';

/** The account the server's processes run as; undefined ids mean the caller's own. */
export interface DatabaseUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** Accounts tried in this order when the caller is root, whom PostgreSQL refuses to run as. */
export const ROOT_FALLBACK_USERS: readonly string[] = ['postgres', 'nobody'];

/** Finds an account in the text of a passwd file, or undefined. */
export function findAccount(passwd: string, name: string): DatabaseUser | undefined {
  for (const line of passwd.split('\n')) {
    const [login, , uid, gid] = line.split(':');
    if (login !== name || uid === undefined || gid === undefined) continue;
    if (/^[0-9]+$/.test(uid) && /^[0-9]+$/.test(gid)) return { name, uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}

/**
 * The other account the server must run as, or undefined when the caller is not root and uses its own.
 * Throws `no_database_user` when root finds none of `names` in the passwd file.
 */
export function chooseDatabaseUser(
  callerUid: number,
  names: readonly string[] = ROOT_FALLBACK_USERS,
  readPasswd: () => string = () => readFileSync('/etc/passwd', 'utf8'),
): DatabaseUser | undefined {
  if (callerUid !== 0) return undefined;
  const passwd = readPasswd();
  for (const name of names) {
    const account = findAccount(passwd, name);
    if (account !== undefined && account.uid !== 0) return account;
  }
  throw new CodedError('no_database_user', `PostgreSQL does not run as root, and /etc/passwd has no account ${names.join(' or ')}`, {
    action: 'Create an account named postgres, run Firecrew as another user, or set FIRECREW_DATABASE_URL.',
  });
}

/** Refuses a folder that `user` cannot walk to: `database_folder_unreachable` names the parent that bars the way. */
export function assertReachable(path: string, user: DatabaseUser): void {
  for (let folder = path; ; folder = dirname(folder)) {
    const { mode, uid, gid } = statSync(folder);
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) {
      throw new CodedError('database_folder_unreachable', `account ${user.name} cannot walk through ${folder} to ${path}`, {
        id: path,
        action: `Allow it with chmod o+x ${folder}, or choose a home such as /var/lib/firecrew.`,
      });
    }
    if (folder === dirname(folder)) return;
  }
}
