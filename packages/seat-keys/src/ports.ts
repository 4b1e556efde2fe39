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
  /** The issuer's id of the key; a record without it cannot be revoked. */
  readonly keyId?: string;
  /** Name of the issuer that made it ({@link Issuer.name}); absent for the server itself. Only that one can end it. */
  readonly issuer?: string;
  /** When it ends by itself, ISO 8601; absent where the issuer says nothing of it. */
  readonly expiresAt?: string;
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

/** How an issuer answered: an HTTP status, `unreachable` where no answer came that counts, `not_offered` where it has no such call and nothing was sent. */
export type IssuerStatus = number | 'unreachable' | 'not_offered';

/** An issuer's answer without more. */
export interface IssuerReply {
  readonly status: IssuerStatus;
}

/** The issuer's answer to a mint, unjudged. */
export interface MintReply extends IssuerReply {
  readonly key?: SeatKey;
  readonly keyId?: string;
  /** ISO 8601. */
  readonly expiresAt?: string;
}

/** What a key is made for. */
export interface MintRequest {
  readonly seatId: string;
  readonly role: string;
  /** Shown by the issuer: who holds the key. */
  readonly name: string;
}

/** Makes and ends keys: the server itself, or another that makes keys which it accepts. */
export interface Issuer {
  /** What its keys are stored with; absent for the server itself. */
  readonly name?: string;
  mint(request: MintRequest): Promise<MintReply>;
  /** 404 of a key that is gone or never was. A `successor` is the id of a live key of the same seat under which what runs goes on. */
  revoke(keyId: string, options?: { readonly successor?: string }): Promise<IssuerReply>;
  /** Puts a new key in the place of one in one step, with the same id or another. Absent where that is a mint and a revocation. */
  rotate?(keyId: string, request: MintRequest): Promise<MintReply>;
  /** Whether a key is accepted now: success, or 404 where it is not. Absent where only the server that it is for can say so. */
  verify?(key: SeatKey, keyId: string | undefined): Promise<IssuerReply>;
  /** Asks for the right to mint itself, which is another than the right to list. */
  askMintRight(): Promise<IssuerReply>;
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
