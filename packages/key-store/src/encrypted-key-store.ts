import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import {
  formatKeyAddress,
  type KeyAddress,
  type KeyStore,
  type StoreChange,
  type StoredKey,
  type StoreError,
  type StoreRead,
  storeErrorOf,
} from '@firecrew/seat-keys';
import { formatEntry, parseEntry } from './entry.ts';
import { createPrivateFile, readPrivateFile, removePrivateFile, replacePrivateFile } from './private-file.ts';

/** Largest entry that is written or read, in bytes. */
export const MAX_ENTRY_BYTES = 16 * 1024;
/** First byte of an entry: its format. */
const FORMAT = 1;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;
const KEY_FILE = 'store.key';

const corrupt: StoreError = { fault: 'corrupt' };

/**
 * Keys in files of one folder, one for each address, each sealed with AES-256-GCM under a key in a file beside them. The address is a part of
 * what is sealed, so an entry that was moved or exchanged is `corrupt`, as is one that was cut, changed, or made readable for others. Sealing
 * keeps keys out of backups, listings and searches of single files; whoever can read the whole folder can read the keys.
 */
export class EncryptedKeyStore implements KeyStore {
  readonly #folder: string;

  /** `folder` is made (0700) with the first write. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  async read(address: KeyAddress): Promise<StoreRead> {
    const text = formatKeyAddress(address);
    try {
      const sealed = await readPrivateFile(this.#fileOf(text), MAX_ENTRY_BYTES);
      if (sealed.status === 'absent') return { status: 'absent' };
      const secret = await this.#secret();
      if (sealed.status === 'odd' || secret === undefined) return { status: 'unreadable', error: corrupt };
      const opened = unseal(sealed.bytes, secret, text);
      const record = opened === undefined ? undefined : parseEntry(opened);
      return record === undefined ? { status: 'unreadable', error: corrupt } : { status: 'found', record };
    } catch (error) {
      return { status: 'unreadable', error: storeErrorOf(error) };
    }
  }

  async write(address: KeyAddress, record: StoredKey): Promise<StoreChange> {
    const text = formatKeyAddress(address);
    try {
      const secret = await this.#makeSecret();
      if (secret === undefined) return { status: 'failed', error: corrupt };
      const sealed = seal(formatEntry(record), secret, text);
      // An entry that could not be read back is not written.
      if (sealed.length > MAX_ENTRY_BYTES) return { status: 'failed', error: { fault: 'io', systemCode: 'EFBIG' } };
      await replacePrivateFile(this.#fileOf(text), sealed);
      return { status: 'done' };
    } catch (error) {
      return { status: 'failed', error: storeErrorOf(error) };
    }
  }

  async clear(address: KeyAddress): Promise<StoreChange> {
    try {
      await removePrivateFile(this.#fileOf(formatKeyAddress(address)));
      return { status: 'done' };
    } catch (error) {
      return { status: 'failed', error: storeErrorOf(error) };
    }
  }

  /** A name that no address can lead out of the folder with. */
  #fileOf(address: string): string {
    return join(this.#folder, `${createHash('sha256').update(address).digest('hex')}.sealed`);
  }

  /** The key of the store, or undefined where it is not there or is not what was written. */
  async #secret(): Promise<Buffer | undefined> {
    const read = await readPrivateFile(join(this.#folder, KEY_FILE), KEY_BYTES);
    return read.status === 'found' && read.bytes.length === KEY_BYTES ? read.bytes : undefined;
  }

  /** The same, made where it is not there yet; one that is damaged is never replaced. */
  async #makeSecret(): Promise<Buffer | undefined> {
    await createPrivateFile(join(this.#folder, KEY_FILE), randomBytes(KEY_BYTES));
    return await this.#secret();
  }
}

function seal(text: string, secret: Buffer, address: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(Buffer.from(address));
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(FORMAT), nonce, cipher.getAuthTag(), body]);
}

function unseal(bytes: Buffer, secret: Buffer, address: string): string | undefined {
  if (bytes.length < HEAD_BYTES || bytes[0] !== FORMAT) return undefined;
  const nonce = bytes.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(address))
    .setAuthTag(bytes.subarray(1 + NONCE_BYTES, HEAD_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(HEAD_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
