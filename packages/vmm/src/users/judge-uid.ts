/** User ids that this node gives to VMs; the group of each has the same number. */
export interface UserRange {
  readonly firstUid: number;
  readonly count: number;
}

/** What is known of the users of a host. */
export interface HostUsers {
  /** Those that have an account. */
  readonly accounts: ReadonlySet<number>;
  /** Those of live processes, in any of their roles. */
  readonly running: ReadonlySet<number>;
  /** Groups of the folders of VMs that are there. */
  readonly folders: ReadonlySet<number>;
}

/**
 * Whether a new VM may have a user id.
 * - `reserved`: root, `nobody` and the ids that mean "none", also in their 16-bit form.
 * - `account`: it is somebody's, such as the server's or the database's.
 * - `running`: a process has it, perhaps a VMM whose shim is gone.
 * - `left_behind`: files of a VM that had it are still there.
 */
export type UidVerdict = 'free' | 'reserved' | 'account' | 'running' | 'left_behind';

const RESERVED: ReadonlySet<number> = new Set([0, 65_534, 65_535, 4_294_967_294, 4_294_967_295]);

/** Judges one id against a host. */
export function judgeUid(uid: number, { accounts, running, folders }: HostUsers): UidVerdict {
  if (RESERVED.has(uid)) return 'reserved';
  if (accounts.has(uid)) return 'account';
  if (running.has(uid)) return 'running';
  return folders.has(uid) ? 'left_behind' : 'free';
}

/** The ids of a range, each once, beginning `offset` behind the first: an id is used again as late as can be when that moves on. */
export function uidsFrom({ firstUid, count }: UserRange, offset: number): number[] {
  return Array.from({ length: count }, (_, index) => firstUid + ((offset + index) % count));
}
