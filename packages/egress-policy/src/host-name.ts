import type { HostFault } from './reasons.ts';

/** Longest label of a DNS name in bytes (RFC 1035 section 2.3.4). */
export const LABEL_MAX_BYTES = 63;
/** Longest DNS name in bytes, without the final dot. */
export const NAME_MAX_BYTES = 253;

/** The one spelling of a host that check, look-up, dial and log use, or why there is none. */
export type HostNameResult =
  | { readonly ok: true; readonly host: string }
  | { readonly ok: false; readonly verdict: 'malformed'; readonly reason: HostFault }
  | { readonly ok: false; readonly verdict: 'denied'; readonly reason: 'ip_literal' | 'numeric_host' };

const ALLOWED = /^[A-Za-z0-9._-]*$/;
const IPV6_SHAPE = /^[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%.*)?$/s;
// URL parsers read a name whose last label is a number as an IPv4 address (WHATWG URL, "ends in a number").
const NUMERIC_LABEL = /^(?:[0-9]+|0x[0-9a-f]*)$/;
const DOTTED_QUAD = /^\d{1,3}(?:\.\d{1,3}){3}$/;

function malformed(reason: HostFault): HostNameResult {
  return { ok: false, verdict: 'malformed', reason };
}

function labelFault(label: string): HostFault | undefined {
  if (label === '') return 'empty_label';
  if (label.length > LABEL_MAX_BYTES) return 'label_too_long';
  if (label.startsWith('-') || label.endsWith('-')) return 'hyphen_at_label_edge';
  return undefined;
}

/**
 * Turns the text of a host into its one lower-case ASCII spelling without a final dot.
 * Only ASCII letters, digits, `-`, `_` and `.` are let through; nothing is decoded, mapped or cut. Addresses in any notation, and names
 * whose last label is a number, are refused, since resolvers and URL parsers take them for addresses.
 */
export function normaliseHost(text: string): HostNameResult {
  if (text === '') return malformed('empty_host');
  if (text.startsWith('[') || IPV6_SHAPE.test(text)) return { ok: false, verdict: 'denied', reason: 'ip_literal' };
  if (!ALLOWED.test(text)) return malformed('bad_character');
  const host = asciiLowerCase(text.endsWith('.') ? text.slice(0, -1) : text);
  const labels = host.split('.');
  for (const label of labels) {
    const fault = labelFault(label);
    if (fault !== undefined) return malformed(fault);
  }
  if (host.length > NAME_MAX_BYTES) return malformed('name_too_long');
  if (NUMERIC_LABEL.test(labels.at(-1) ?? '')) {
    return { ok: false, verdict: 'denied', reason: DOTTED_QUAD.test(host) ? 'ip_literal' : 'numeric_host' };
  }
  return { ok: true, host };
}

// `toLowerCase` maps letters outside ASCII to ASCII ones (the Kelvin sign); the class check before makes that harmless, this makes it impossible.
function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => String.fromCharCode(letter.charCodeAt(0) + 32));
}
