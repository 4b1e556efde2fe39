import { SeatKey, type StoredKey } from '@firecrew/seat-keys';
import * as z from 'zod';

/** An entry as it is written: the one place where a key is text. */
const entrySchema = z.strictObject({
  key: z.string().min(1).max(4096),
  workspaceId: z.string().max(200),
  seatId: z.string().min(1).max(200),
  createdAt: z.string().max(64),
  lastVerifiedAt: z.string().max(64).optional(),
  keyId: z.string().min(1).max(200).optional(),
  issuer: z.string().min(1).max(64).optional(),
  expiresAt: z.string().max(64).optional(),
});

/** A record as JSON. */
export function formatEntry(record: StoredKey): string {
  return JSON.stringify({ ...record, key: record.key.reveal() });
}

/** The record in a JSON text, or undefined where it is not what {@link formatEntry} writes. */
export function parseEntry(text: string): StoredKey | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  const parsed = entrySchema.safeParse(json);
  if (!parsed.success) return undefined;
  const { key, lastVerifiedAt, keyId, issuer, expiresAt, ...rest } = parsed.data;
  return {
    ...rest,
    key: new SeatKey(key),
    ...(lastVerifiedAt === undefined ? {} : { lastVerifiedAt }),
    ...(keyId === undefined ? {} : { keyId }),
    ...(issuer === undefined ? {} : { issuer }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}
