import { parsePort } from './allow-entry.ts';
import type { HeadFault } from './reasons.ts';

/** The request line of an acceptable CONNECT. `rawHost` is as sent: give it to `decideHost` and use nothing but what comes back. */
export interface ConnectTarget {
  readonly rawHost: string;
  readonly port: number;
  readonly minorVersion: 0 | 1;
}

/** `http`: the peer speaks HTTP/1, so the rest of its head is worth reading before the refusal. */
export type RequestLineResult =
  | { readonly ok: true; readonly target: ConnectTarget }
  | { readonly ok: false; readonly reason: HeadFault; readonly http: boolean };

const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const ABSOLUTE_FORM = /^[A-Za-z][A-Za-z0-9+.-]*:\/\//;

function refuse(reason: HeadFault, http = true): RequestLineResult {
  return { ok: false, reason, http };
}

/** Reads `CONNECT host:port HTTP/1.x` (RFC 9112 section 3) from one line without its line end, one character for each byte. */
export function parseRequestLine(line: string): RequestLineResult {
  const parts = line.split(' ');
  const [method = '', target = '', version = ''] = parts;
  if (!METHOD.test(method)) return refuse('bad_request_line', false);
  if (parts.length !== 3) return refuse('bad_request_line', version.startsWith('HTTP/1.') || line.endsWith(' HTTP/1.1'));
  if (version !== 'HTTP/1.1' && version !== 'HTTP/1.0') return refuse('bad_version', false);
  if (method !== 'CONNECT') return refuse(ABSOLUTE_FORM.test(target) ? 'plain_http' : 'method_not_connect');
  const colon = target.lastIndexOf(':');
  if (colon === -1 || target.endsWith(']')) return refuse('missing_port');
  const port = parsePort(target.slice(colon + 1));
  if (port === undefined) return refuse('bad_port');
  return { ok: true, target: { rawHost: target.slice(0, colon), port, minorVersion: version === 'HTTP/1.1' ? 1 : 0 } };
}
