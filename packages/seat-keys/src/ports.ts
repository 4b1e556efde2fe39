import { SeatKeysError } from './reasons.ts';
import type { SeatKey } from './seat-key.ts';
import type { StoreError } from './store-error.ts';

/** Where a key is kept: two workspaces or two servers can never read each other's. */
export interface KeyAddress {
  /** Host of the server, with its port unless that is the scheme's. */
  readonly serverHost: string;
  /** Slug of the workspace. */
  readonly workspace: string;
  readonly seatId: string;
}

/** What is kept. */
export interface StoredKey {
  readonly key: SeatKey;
  readonly workspaceId: string;
  readonly seatId: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** When the server last accepted the key, ISO 8601; absent where it was never used. */
  readonly lastVerifiedAt?: string;
  /** The server's id of the key; a record without it cannot be revoked. */
  readonly keyId?: string;
}

/** What reading a store gave. "Nothing there" and "could not read" never look alike. */
export type StoreRead =
  | { readonly status: 'found'; readonly record: StoredKey }
  | { readonly status: 'absent' }
  | { readonly status: 'unreadable'; readonly error: StoreError };

/** What changing a store gave. */
export type StoreChange = { readonly status: 'done' } | { readonly status: 'failed'; readonly error: StoreError };

/** Keeps keys: a keychain, or files. Secrets never go into an argument, a log or an error. Clearing an absent entry is done. */
export interface KeyStore {
  read(address: KeyAddress): Promise<StoreRead>;
  write(address: KeyAddress, record: StoredKey): Promise<StoreChange>;
  clear(address: KeyAddress): Promise<StoreChange>;
}

/** The server's answer to a mint, unjudged. */
export interface MintReply {
  /** HTTP status, or `unreachable` where no answer came. */
  readonly status: number | 'unreachable';
  readonly key?: SeatKey;
  readonly keyId?: string;
}

/** Makes and ends keys on the server. */
export interface Issuer {
  mint(request: { readonly seatId: string; readonly name: string }): Promise<MintReply>;
  /** Gives the HTTP status. A `successor` is the id of a live key of the same seat under which what runs goes on. */
  revoke(keyId: string, options?: { readonly successor?: string }): Promise<{ readonly status: number | 'unreachable' }>;
  /** Asks the server for the right to mint itself, which is another than the right to list. */
  askMintRight(): Promise<{ readonly status: number | 'unreachable' }>;
}

/** One text for an address, the same for no other. Throws `key_address_invalid` for an empty part. */
export function formatKeyAddress(address: KeyAddress): string {
  const parts = [address.serverHost.toLowerCase(), address.workspace, address.seatId];
  if (parts.some((part) => part === '')) throw new SeatKeysError('key_address_invalid', 'a key address has an empty part');
  return parts.map((part) => encodeURIComponent(part)).join('/');
}

/** The `serverHost` of a server's URL. Throws `key_address_invalid` for text that is none. */
export function serverHostOf(url: string): string {
  if (!URL.canParse(url)) throw new SeatKeysError('key_address_invalid', 'the server is not named by a URL');
  return new URL(url).host;
}
