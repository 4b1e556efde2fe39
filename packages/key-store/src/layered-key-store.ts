import type { KeyAddress, KeyStore, StoreChange, StoredKey, StoreRead } from '@firecrew/seat-keys';

/** A store that may be read, before one that is written. What the first has, or cannot read, decides; changes go to the second alone. */
export class LayeredKeyStore implements KeyStore {
  readonly #over: KeyStore;
  readonly #under: KeyStore;

  constructor(over: KeyStore, under: KeyStore) {
    this.#over = over;
    this.#under = under;
  }

  async read(address: KeyAddress): Promise<StoreRead> {
    const read = await this.#over.read(address);
    return read.status === 'absent' ? await this.#under.read(address) : read;
  }

  /** Refused where the first has an entry of that address: it would hide what is written. */
  async write(address: KeyAddress, record: StoredKey): Promise<StoreChange> {
    const over = await this.#over.read(address);
    return over.status === 'absent' ? await this.#under.write(address, record) : { status: 'failed', error: { fault: 'denied' } };
  }

  async clear(address: KeyAddress): Promise<StoreChange> {
    const over = await this.#over.read(address);
    return over.status === 'absent' ? await this.#under.clear(address) : await this.#over.clear(address);
  }
}
