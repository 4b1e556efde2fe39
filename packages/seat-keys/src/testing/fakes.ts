import {
  formatKeyAddress,
  type Issuer,
  type IssuerReply,
  type IssuerStatus,
  type KeyAddress,
  type KeyStore,
  type MintReply,
  type MintRequest,
  type StoreChange,
  type StoredKey,
  type StoreRead,
} from '../ports.ts';
import { SeatKey } from '../seat-key.ts';
import type { StoreError } from '../store-error.ts';

/** Faults to inject into a {@link FakeKeyStore}; each is asked before the call is honoured, and may throw. */
export interface FakeStoreFaults {
  readonly onRead?: (address: KeyAddress) => StoreError | undefined;
  readonly onWrite?: (address: KeyAddress) => StoreError | undefined;
  readonly onClear?: (address: KeyAddress) => StoreError | undefined;
}

/** A store in memory. */
export class FakeKeyStore implements KeyStore {
  readonly entries = new Map<string, StoredKey>();
  readonly #faults: FakeStoreFaults;

  constructor(faults: FakeStoreFaults = {}) {
    this.#faults = faults;
  }

  async read(address: KeyAddress): Promise<StoreRead> {
    const error = this.#faults.onRead?.(address);
    if (error !== undefined) return { status: 'unreadable', error };
    const record = this.entries.get(formatKeyAddress(address));
    return record === undefined ? { status: 'absent' } : { status: 'found', record };
  }

  async write(address: KeyAddress, record: StoredKey): Promise<StoreChange> {
    const error = this.#faults.onWrite?.(address);
    if (error !== undefined) return { status: 'failed', error };
    this.entries.set(formatKeyAddress(address), record);
    return { status: 'done' };
  }

  async clear(address: KeyAddress): Promise<StoreChange> {
    const error = this.#faults.onClear?.(address);
    if (error !== undefined) return { status: 'failed', error };
    this.entries.delete(formatKeyAddress(address));
    return { status: 'done' };
  }
}

/** Answers of a {@link FakeIssuer} that differ from success; they may throw. */
export interface FakeIssuerAnswers {
  readonly onMint?: (seatId: string) => MintReply | undefined;
  readonly onRevoke?: (keyId: string) => IssuerStatus | undefined;
  readonly right?: IssuerStatus;
}

/** A server in memory. `requests` lists all it was asked, `live` the ids of the keys that are valid. */
export class FakeIssuer implements Issuer {
  readonly requests: string[] = [];
  readonly live = new Set<string>();
  readonly names: string[] = [];
  readonly #answers: FakeIssuerAnswers;
  #count = 0;

  constructor(answers: FakeIssuerAnswers = {}) {
    this.#answers = answers;
  }

  async mint(request: MintRequest): Promise<MintReply> {
    this.requests.push(`mint ${request.seatId}`);
    const answer = this.#answers.onMint?.(request.seatId);
    if (answer !== undefined) return answer;
    this.#count += 1;
    const keyId = `key-${this.#count}`;
    this.live.add(keyId);
    this.names.push(request.name);
    return { status: 201, key: new SeatKey(`secret-of-${keyId}`), keyId };
  }

  async revoke(keyId: string, options: { readonly successor?: string } = {}): Promise<IssuerReply> {
    this.requests.push(`revoke ${keyId}${options.successor === undefined ? '' : ` for ${options.successor}`}`);
    const status = this.#answers.onRevoke?.(keyId);
    if (status !== undefined) return { status };
    return { status: this.live.delete(keyId) ? 204 : 404 };
  }

  async verify(key: SeatKey): Promise<IssuerReply> {
    const keyId = key.reveal().replace('secret-of-', '');
    return { status: this.live.has(keyId) ? 200 : 404 };
  }

  async askMintRight(): Promise<IssuerReply> {
    this.requests.push('right');
    return { status: this.#answers.right ?? 200 };
  }
}
