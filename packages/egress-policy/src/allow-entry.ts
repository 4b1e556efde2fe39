import { type ConfigProblem, EgressConfigError } from './config-error.ts';
import { normaliseHost } from './host-name.ts';
import type { ConfigFault } from './reasons.ts';

/** What may flow through a tunnel: `tls` demands a ClientHello with the right server name, `tcp` passes any bytes. */
export type TunnelProtocol = 'tls' | 'tcp';

/** One entry of an allow-list in parsed form; plain data. */
export interface AllowRule {
  /** Normalised name without a leading dot. */
  readonly host: string;
  /** Whether the entry covers true subdomains as well. */
  readonly subdomains: boolean;
  /** 1 to 65535. */
  readonly port: number;
  readonly protocol: TunnelProtocol;
}

/** An entry as people write it: `HOST[:PORT[/PROTOCOL]]`, or the same as an object. A leading dot covers the domain and its subdomains. */
export type AllowEntry =
  | string
  | { readonly host: string; readonly port?: number | undefined; readonly protocol?: TunnelProtocol | undefined };

export type AllowEntryResult = { readonly ok: true; readonly rule: AllowRule } | { readonly ok: false; readonly problem: ConfigProblem };
export type AllowListResult =
  | { readonly ok: true; readonly rules: readonly AllowRule[] }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

/** The port of an entry that names none. */
export const DEFAULT_PORT = 443;
/** Most entries in one list. */
export const ALLOW_ENTRIES_MAX = 20_000;

const PORT = /^[1-9][0-9]{0,4}$/;
const PORT_MAX = 65_535;

function refuse(entry: string, reason: ConfigFault, hint: string): AllowEntryResult {
  return { ok: false, problem: { entry, reason, message: `${JSON.stringify(entry)}: ${hint}` } };
}

/** A decimal port without sign or leading zero, 1 to 65535, else undefined. */
export function parsePort(text: string): number | undefined {
  if (!PORT.test(text)) return undefined;
  const port = Number(text);
  return port <= PORT_MAX ? port : undefined;
}

/** Reads one allow-list entry; a bad or over-broad one is a problem that must stop the load. Spaces around it are dropped. */
export function parseAllowEntry(entry: AllowEntry): AllowEntryResult {
  return typeof entry === 'string' ? parseEntryText(entry) : parseEntryObject(entry);
}

function parseEntryText(entry: string): AllowEntryResult {
  const text = entry.replace(/^[ \t]+|[ \t]+$/g, '');
  if (text === '') return refuse(entry, 'empty_entry', 'an empty entry is refused; an empty list denies everything');
  if (text.includes('://')) return refuse(entry, 'url_not_allowed', 'write the host name alone, without a scheme');
  const colon = text.indexOf(':');
  if (colon === -1) return finishEntry(entry, text, undefined, undefined);
  if (text.indexOf(':', colon + 1) !== -1) return refuse(entry, 'address_not_allowed', 'more than one colon; addresses are not entries');
  const [portText = '', protocol, extra] = text.slice(colon + 1).split('/');
  const port = parsePort(portText);
  if (port === undefined) return refuse(entry, 'bad_port', 'the port must be a number from 1 to 65535');
  if (extra !== undefined) return refuse(entry, 'path_not_allowed', 'nothing may follow the protocol');
  if (protocol !== undefined && protocol !== 'tls' && protocol !== 'tcp') {
    return refuse(entry, 'bad_protocol', 'the protocol after the port is `tls` or `tcp`; a path is not allowed');
  }
  return finishEntry(entry, text.slice(0, colon), port, protocol);
}

function parseEntryObject(entry: Exclude<AllowEntry, string>): AllowEntryResult {
  const label = JSON.stringify(entry);
  const { port, protocol } = entry;
  if (port !== undefined && parsePort(String(port)) === undefined)
    return refuse(label, 'bad_port', 'the port must be a number from 1 to 65535');
  if (protocol !== undefined && protocol !== 'tls' && protocol !== 'tcp')
    return refuse(label, 'bad_protocol', 'the protocol is `tls` or `tcp`');
  if (protocol === 'tcp' && port === undefined) return refuse(label, 'protocol_needs_port', 'protocol `tcp` needs a port');
  if (entry.host.trim() === '') return refuse(label, 'empty_entry', 'an empty host is refused');
  return finishEntry(label, entry.host, port, protocol);
}

function finishEntry(entry: string, name: string, port: number | undefined, protocol: TunnelProtocol | undefined): AllowEntryResult {
  if (name.includes('/')) return refuse(entry, 'path_not_allowed', 'write the host name alone, without a path');
  if (name.includes('*')) return refuse(entry, 'wildcard_not_allowed', 'write `.example.com` for a domain and its subdomains');
  const subdomains = name.startsWith('.');
  const host = normaliseHost(subdomains ? name.slice(1) : name);
  if (!host.ok && host.verdict === 'denied') return refuse(entry, 'address_not_allowed', 'addresses are not entries; name the host');
  if (!host.ok) return refuse(entry, 'bad_name', `not a host name (${host.reason})`);
  if (subdomains && !host.host.includes('.')) return refuse(entry, 'too_broad', 'a whole top-level domain is too broad');
  return { ok: true, rule: { host: host.host, subdomains, port: port ?? DEFAULT_PORT, protocol: protocol ?? 'tls' } };
}

/** Reads a whole allow-list; every refused entry is reported, and one is enough to refuse the list. */
export function parseAllowList(entries: readonly AllowEntry[]): AllowListResult {
  if (entries.length > ALLOW_ENTRIES_MAX) {
    const message = `the list has ${entries.length} entries, at most ${ALLOW_ENTRIES_MAX} are allowed`;
    return { ok: false, problems: [{ entry: '', reason: 'too_many_entries', message }] };
  }
  const rules: AllowRule[] = [];
  const problems: ConfigProblem[] = [];
  for (const entry of entries) {
    const result = parseAllowEntry(entry);
    if (result.ok) rules.push(result.rule);
    else problems.push(result.problem);
  }
  return problems.length === 0 ? { ok: true, rules } : { ok: false, problems };
}

/** `parseAllowList` for start-up code: returns the rules or throws `EgressConfigError` with every problem. */
export function loadAllowList(entries: readonly AllowEntry[]): readonly AllowRule[] {
  const result = parseAllowList(entries);
  if (!result.ok) throw new EgressConfigError(result.problems);
  return result.rules;
}

/** The shortest entry text that parses back to the same rule; used as the name of a rule in verdicts and logs. */
export function formatAllowRule(rule: AllowRule): string {
  const name = `${rule.subdomains ? '.' : ''}${rule.host}`;
  if (rule.protocol === 'tcp') return `${name}:${rule.port}/tcp`;
  return rule.port === DEFAULT_PORT ? name : `${name}:${rule.port}`;
}
