import type { KeyAddress, KeyStore, StoreChange, StoreRead } from '@firecrew/seat-keys';
import { parseEntry } from './entry.ts';

/** Begin of the variable of a seat; its id follows as it is. */
export const SEAT_KEY_VARIABLE = 'FIRECREW_SEAT_KEY_';

/** Whose keys an environment holds, and the environment. */
export interface EnvironmentKeys {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The one server and workspace that its keys are for; every other address is absent. */
  readonly serverHost: string;
  readonly workspace: string;
}

/**
 * Keys in variables, for machines that get their secrets so: `FIRECREW_SEAT_KEY_<seat id>` holds the server's answer to the mint as JSON. It
 * is read alone; every change is refused as `denied`. An empty variable is absent, one of another form `corrupt`.
 */
export class EnvironmentKeyStore implements KeyStore {
  readonly #keys: EnvironmentKeys;

  constructor(keys: EnvironmentKeys) {
    this.#keys = keys;
  }

  async read(address: KeyAddress): Promise<StoreRead> {
    const { env, serverHost, workspace } = this.#keys;
    const isOurs = address.serverHost.toLowerCase() === serverHost.toLowerCase() && address.workspace === workspace;
    const text = isOurs ? env[`${SEAT_KEY_VARIABLE}${address.seatId}`] : undefined;
    if (text === undefined || text === '') return { status: 'absent' };
    const record = parseEntry(text);
    if (record?.seatId !== address.seatId) return { status: 'unreadable', error: { fault: 'corrupt' } };
    return { status: 'found', record };
  }

  async write(): Promise<StoreChange> {
    return { status: 'failed', error: { fault: 'denied' } };
  }

  async clear(): Promise<StoreChange> {
    return { status: 'failed', error: { fault: 'denied' } };
  }
}
