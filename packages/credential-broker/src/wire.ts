import { randomBytes } from 'node:crypto';
import { HEAD_REFUSALS, type HeaderPair, type HeadRefusal, HOST_REFUSALS, type HostRefusal, headerPairs } from '@firecrew/model-route';

/** Random bytes of a handle. */
const HANDLE_BYTES = 32;
const HANDLE = /^[A-Za-z0-9_-]{43}$/;
/** A header that never goes up, of no format and not where bodies are passed through. */
const HANDLE_HEADER = 'proxy-authorization';
const SCHEME = 'Handle ';
const REFUSAL_HEADER = 'firecrew-refusal';
const UNSENT_HEADER = 'firecrew-unsent';
const LEAKS_TRAILER = 'firecrew-leaks';

/** Why a broker refuses a request: of what it adds to the reasons of heads, `handle_refused` is of a handle that it does not know, or not any more. */
export type BrokerRefusal = HeadRefusal | HostRefusal | 'feature_refused';

/** What a broker says in place of an answer of the upstream. */
export interface BrokerRefused {
  readonly reason: BrokerRefusal;
  /** Nothing of the request reached the upstream. */
  readonly isUnsent: boolean;
}

/** A new handle: 256 random bits, for one turn. */
export function newHandle(): string {
  return randomBytes(HANDLE_BYTES).toString('base64url');
}

/** True for the text of a handle. */
export function isHandle(text: string): boolean {
  return HANDLE.test(text);
}

/** The header that shows a handle to the broker. */
export function handleHeader(handle: string): HeaderPair {
  return [HANDLE_HEADER, `${SCHEME}${handle}`];
}

/** The handle of a request; undefined where there is none, or more than one. */
export function readHandle(raw: readonly string[]): string | undefined {
  const values = headerPairs(raw).filter(([name]) => name === HANDLE_HEADER);
  const [, value = ''] = values[0] ?? [];
  const handle = value.slice(SCHEME.length);
  return values.length === 1 && value.startsWith(SCHEME) && isHandle(handle) ? handle : undefined;
}

/** Headers of a refusal of the broker's own; those of an upstream with such names go down to nobody. */
export function refusedHeaders({ reason, isUnsent }: BrokerRefused): HeaderPair[] {
  return [[REFUSAL_HEADER, reason], ...(isUnsent ? [[UNSENT_HEADER, '1'] as const] : [])];
}

/** What the broker refused; undefined where the headers are those of an answer. A reason that nobody knows counts as `broker_lost`. */
export function readRefused(raw: readonly string[]): BrokerRefused | undefined {
  const pairs = new Map(headerPairs(raw));
  const text = pairs.get(REFUSAL_HEADER);
  if (text === undefined) return undefined;
  const reason = [...HOST_REFUSALS, ...HEAD_REFUSALS, 'feature_refused' as const].find((known) => known === text);
  return { reason: reason ?? 'broker_lost', isUnsent: pairs.has(UNSENT_HEADER) };
}

/** The trailer that says how often a credential was taken out of an answer. */
export function leaksTrailer(found: number): Record<string, string> {
  return { [LEAKS_TRAILER]: String(found) };
}

/** The header that announces `leaksTrailer`. */
export const LEAKS_ANNOUNCED: HeaderPair = ['trailer', LEAKS_TRAILER];

/** How often a credential was taken out of an answer whose trailers these are; 0 where the broker did not say. */
export function readLeaks(trailers: Readonly<Record<string, string | undefined>>): number {
  const text = trailers[LEAKS_TRAILER] ?? '';
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}
