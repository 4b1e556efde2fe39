import { randomInt } from 'node:crypto';
import { CodedError, tryHostLock } from '@firecrew/base';
import type { GuestOwner } from '../port/driver.ts';
import { judgeUid, type UserRange, uidsFrom } from './judge-uid.ts';
import { type HostUserPlaces, readHostUsers } from './read-host-users.ts';

/** A user that one VM has until it is given back, or until this process ends. */
export interface LentUser {
  readonly owner: GuestOwner;
  release(): void;
}

/** Where users come from, and where the folders of VMs are. */
export interface VmUsersOptions extends UserRange {
  readonly vmRoots: readonly string[];
  readonly places?: Omit<HostUserPlaces, 'vmRoots'>;
}

/**
 * Lends users of a range to VMs, each to one at a time on the whole host: a lock of this process stands for a live VM. What a process that
 * died has left, a VMM that runs on or files of its VM, keeps the user back until that is gone too.
 */
export class VmUsers {
  readonly #options: VmUsersOptions;

  constructor(options: VmUsersOptions) {
    this.#options = options;
  }

  /** Rejects with `owners_used_up` when none of the range is free now. */
  async take(vmId: string): Promise<LentUser> {
    const before = this.#read();
    for (const uid of uidsFrom(this.#options, randomInt(this.#options.count))) {
      if (judgeUid(uid, before) !== 'free') continue;
      const lock = await tryHostLock(`\0firecrew-uid/${uid}`);
      if (lock === undefined) continue;
      // Between the look and the lock it may have had another VM.
      if (judgeUid(uid, this.#read()) === 'free') return { owner: { uid, gid: uid }, release: () => lock.release() };
      lock.release();
    }
    const { firstUid, count } = this.#options;
    throw new CodedError(
      'owners_used_up',
      `all ${count} user ids of this node from ${firstUid} on are in use: none is left for VM ${vmId}`,
      {
        id: vmId,
        action: 'Wait for attempts to end, or widen `owners.count` in the configuration of the node agent.',
      },
    );
  }

  #read(): ReturnType<typeof readHostUsers> {
    const { vmRoots, places = { passwd: '/etc/passwd', proc: '/proc' } } = this.#options;
    return readHostUsers({ ...places, vmRoots });
  }
}
