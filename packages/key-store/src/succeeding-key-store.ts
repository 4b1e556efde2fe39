import type { KeyAddress, KeyStore, StoreChange, StoredKey, StoreRead } from '@firecrew/seat-keys';

/**
 * A store in the place of an older one, whose keys are still found: without that a key would look as if it had never been made, and live on
 * unseen. What is written goes to the new one and leaves the old one; what is cleared leaves both.
 */
export class SucceedingKeyStore implements KeyStore {
  readonly #now: KeyStore;
  readonly #before: KeyStore;

  constructor(now: KeyStore, before: KeyStore) {
    this.#now = now;
    this.#before = before;
  }

  async read(address: KeyAddress): Promise<StoreRead> {
    const read = await this.#now.read(address);
    return read.status === 'absent' ? await this.#before.read(address) : read;
  }

  async write(address: KeyAddress, record: StoredKey): Promise<StoreChange> {
    const written = await this.#now.write(address, record);
    return written.status === 'failed' ? written : await this.#before.clear(address);
  }

  async clear(address: KeyAddress): Promise<StoreChange> {
    const before = await this.#before.clear(address);
    const now = await this.#now.clear(address);
    return before.status === 'failed' ? before : now;
  }
}
