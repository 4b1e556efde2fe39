import { type ConfigProblem, EgressConfigError } from './config-error.ts';
import { normaliseHost } from './host-name.ts';
import { type IpRange, parseIpRange } from './ip-address.ts';
import type { ConfigFault } from './reasons.ts';

/** What an operator writes to let a named host have addresses that are not public, e.g. `{host: 'git.corp.example', addresses: ['10.2.0.0/16']}`. */
export interface AddressRuleInput {
  /** A name as in an allow-list: a leading dot covers the domain and its subdomains; no port. */
  readonly host: string;
  /** Addresses or CIDR ranges. An address of the node itself is opened only by naming it alone, never by a range. */
  readonly addresses: readonly string[];
}

/** An operator's rule in parsed form. */
export interface AddressRule {
  readonly host: string;
  readonly subdomains: boolean;
  readonly ranges: readonly { readonly text: string; readonly range: IpRange }[];
}

/** Shortest prefix an operator may open, bits: 10.0.0.0/8 and fc00::/7 are the largest private ranges. */
export const IPV4_PREFIX_MIN_BITS = 8;
export const IPV6_PREFIX_MIN_BITS = 7;

function problem(entry: string, reason: ConfigFault, hint: string): ConfigProblem {
  return { entry, reason, message: `${JSON.stringify(entry)}: ${hint}` };
}

function parseRange(text: string): { text: string; range: IpRange } | ConfigProblem {
  const range = parseIpRange(text);
  if (range === undefined) return problem(text, 'bad_address_range', 'write an address or a CIDR range whose host bits are zero');
  const min = range.base.family === 4 ? IPV4_PREFIX_MIN_BITS : IPV6_PREFIX_MIN_BITS;
  if (range.prefix < min) return problem(text, 'range_too_broad', `the prefix must be at least ${min} bits`);
  return { text, range };
}

/** Reads the operator's address rules; throws `EgressConfigError` listing every bad name or range. */
export function loadAddressRules(inputs: readonly AddressRuleInput[]): readonly AddressRule[] {
  const problems: ConfigProblem[] = [];
  const rules: AddressRule[] = [];
  for (const input of inputs) {
    const subdomains = input.host.startsWith('.');
    const host = normaliseHost(subdomains ? input.host.slice(1) : input.host);
    if (!host.ok) problems.push(problem(input.host, 'bad_name', `not a host name (${host.reason})`));
    else if (subdomains && !host.host.includes('.'))
      problems.push(problem(input.host, 'too_broad', 'a whole top-level domain is too broad'));
    const ranges: { text: string; range: IpRange }[] = [];
    for (const text of input.addresses) {
      const parsed = parseRange(text);
      if ('range' in parsed) ranges.push(parsed);
      else problems.push(parsed);
    }
    if (host.ok) rules.push({ host: host.host, subdomains, ranges });
  }
  if (problems.length > 0) throw new EgressConfigError(problems);
  return rules;
}
