import { statSync } from 'node:fs';

/** A user and a group. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** Uids of attempts when the node agent runs as root. */
export const ATTEMPT_OWNERS = { firstUid: 200_000, count: 1_000 } as const;
/** The server's user and group when it is started by root: the number below those of attempts, which needs no entry in `/etc/passwd`. */
export const SERVER_OWNER: Account = { uid: 199_999, gid: 199_999 };

/** The account of the server where it is another one than that of its supervisor. */
export function serverAccount(callerUid: number | undefined = process.getuid?.()): Account | undefined {
  return callerUid === 0 ? SERVER_OWNER : undefined;
}

/** Whether a process runs as the account of the server: what that account writes may name any pid. */
export function runsAsServer(pid: number): boolean {
  const wanted = serverAccount()?.uid ?? process.getuid?.();
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid === wanted;
}
