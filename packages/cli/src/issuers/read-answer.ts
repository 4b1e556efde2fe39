import { type MintReply, SeatKey } from '@firecrew/seat-keys';
import type { MintCall } from './issuer-file.ts';

/** Longest key that is taken, in characters. */
const KEY_MAX_CHARACTERS = 4_096;
/** Seconds since 1970 that are told apart from milliseconds: below the year 5138. */
const SECONDS_MAX = 100_000_000_000;

/** Key, id and end of a key in an answer. What is not where the file says, or not of its form, is missing. */
export function readMinted(
  call: Pick<MintCall, 'key' | 'keyId' | 'expiresAt'>,
  body: unknown,
): Pick<MintReply, 'key' | 'keyId' | 'expiresAt'> {
  const key = valueAt(body, call.key);
  const keyId = call.keyId === undefined ? undefined : idOf(valueAt(body, call.keyId));
  const expiresAt = call.expiresAt === undefined ? undefined : timeOf(valueAt(body, call.expiresAt));
  return {
    ...(typeof key === 'string' && isKey(key) ? { key: new SeatKey(key) } : {}),
    ...(keyId === undefined ? {} : { keyId }),
    ...(expiresAt === undefined ? {} : { expiresAt }),
  };
}

/** The value at a JSON pointer (RFC 6901), or undefined where there is none. */
export function valueAt(body: unknown, pointer: string): unknown {
  let value = body;
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(value)) value = /^(0|[1-9]\d{0,8})$/.test(name) ? value[Number(name)] : undefined;
    // Its own members alone: every object has a constructor.
    else value = isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

/** A key as a header can carry it: printable, without spaces. */
export function isKey(text: string): boolean {
  return text.length <= KEY_MAX_CHARACTERS && /^[\x21-\x7e]+$/.test(text);
}

/** An id that can stand in a URL and in a message. */
function idOf(value: unknown): string | undefined {
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
  return typeof text === 'string' && /^[A-Za-z0-9_.:-]{1,80}$/.test(text) && !/^\.+$/.test(text) ? text : undefined;
}

function timeOf(value: unknown): string | undefined {
  if (typeof value === 'number' && value > 0 && value < SECONDS_MAX) return new Date(value * 1_000).toISOString();
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(value) || Number.isNaN(Date.parse(value)))
    return undefined;
  return new Date(value).toISOString();
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
