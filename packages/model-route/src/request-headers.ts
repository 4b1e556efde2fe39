import type { ModelFormat } from './formats.ts';

/** A header: name in lower case, value. */
export type HeaderPair = readonly [name: string, value: string];

/** Headers of a format that go up, besides those that say what the body is. */
const UP: Readonly<Record<Exclude<ModelFormat, 'pass_through'>, readonly string[]>> = {
  anthropic_messages: ['anthropic-version', 'anthropic-beta'],
  openai_responses: ['openai-beta'],
  openai_chat: ['openai-beta'],
  gemini: [],
};

/** Headers that belong to one connection, that say where a request came from, or that the host sets itself. */
const NEVER_UP =
  /^(?:host|connection|proxy-connection|keep-alive|transfer-encoding|content-length|te|trailer|upgrade|expect|forwarded|via|accept-encoding|content-encoding|x-forwarded-.*|x-real-ip|x-http-method.*|x-original-.*|x-rewrite-.*)$/;
/** Headers in which clients send credentials. */
const CREDENTIALS =
  /^(?:authorization|proxy-authorization|cookie|cookie2|x-api-key|api-key|x-goog-api-key|x-goog-user-project|openai-organization|openai-project|.*(?:token|secret|credential|apikey|api-key).*)$/;

/** Names and values as pairs, names in lower case. */
export function headerPairs(raw: readonly string[]): HeaderPair[] {
  const pairs: HeaderPair[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) pairs.push([(raw[index] ?? '').toLowerCase(), raw[index + 1] ?? '']);
  return pairs;
}

/**
 * What of the guest's headers goes up: of a known format a closed list; else all that is neither of the connection nor a credential. `own` is the
 * header that the host sets. Servers exist that take `_` for `-` in names.
 */
export function headersUp(format: ModelFormat, pairs: readonly HeaderPair[], own: string | undefined): HeaderPair[] {
  const kept = pairs.filter(([name]) => own === undefined || name.replaceAll('_', '-') !== own);
  if (format !== 'pass_through') return kept.filter(([name]) => UP[format].includes(name) || name === 'accept');
  const named = new Set(pairs.filter(([name]) => name === 'connection').flatMap(([, value]) => value.toLowerCase().split(/[\s,]+/)));
  return kept.filter(([name]) => {
    const folded = name.replaceAll('_', '-');
    return !NEVER_UP.test(folded) && !CREDENTIALS.test(folded) && !named.has(name);
  });
}

/** How a credential is shown to an upstream. */
export interface CredentialHeader {
  readonly name: string;
  /** Stands before the credential. */
  readonly prefix: string;
}

/** The header of a format; `own` is the operator's word and wins. A subscription's token of Anthropic is a bearer, told by its prefix. */
export function credentialHeader(format: ModelFormat, credential: string, own?: CredentialHeader): HeaderPair {
  const { name, prefix } = own ?? defaultHeader(format, credential);
  return [name, `${prefix}${credential}`];
}

function defaultHeader(format: ModelFormat, credential: string): CredentialHeader {
  if (format === 'anthropic_messages' && !credential.startsWith('sk-ant-oat')) return { name: 'x-api-key', prefix: '' };
  if (format === 'gemini') return { name: 'x-goog-api-key', prefix: '' };
  return { name: 'authorization', prefix: 'Bearer ' };
}
