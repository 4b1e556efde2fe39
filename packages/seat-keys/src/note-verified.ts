import { readSafely, writeSafely } from './mint-seat-keys.ts';
import type { KeyAddress, KeyStore } from './ports.ts';
import type { StoreError } from './store-error.ts';

/** What became of a note that a key works. */
export type VerifiedNote =
  | { readonly status: 'noted' }
  /** The stored key is another than the one that was used, or none is stored: nothing was written. */
  | { readonly status: 'other_key' }
  | { readonly status: 'failed'; readonly error: StoreError };

/**
 * Notes that the server accepted the key with id `keyId` at `now` (ISO 8601). That a key is stored says nothing about its validity; this
 * time does. A record that is not that of `keyId` is left alone, and a time that is later already stays.
 */
export async function noteVerified(store: KeyStore, address: KeyAddress, keyId: string, now: string): Promise<VerifiedNote> {
  const known = await readSafely(store, address);
  if (known.status === 'unreadable') return { status: 'failed', error: known.error };
  if (known.status === 'absent' || known.record.keyId !== keyId) return { status: 'other_key' };
  if ((known.record.lastVerifiedAt ?? '') >= now) return { status: 'noted' };
  const written = await writeSafely(store, address, { ...known.record, lastVerifiedAt: now });
  return written.status === 'failed' ? written : { status: 'noted' };
}
