import type { EgressPolicy } from './effective-policy.ts';
import { isUnder } from './intersect-rules.ts';
import { type IpAddress, inRange, parseIp, sameAddress } from './ip-address.ts';
import type { AddressDenial } from './reasons.ts';
import { findSpecialRange, translatedIpv4 } from './special-ranges.ts';

/** The verdict on one resolved address. `address` is its canonical text: dial exactly that. */
export type AddressDecision =
  | {
      readonly verdict: 'allowed';
      readonly reason: 'public_address' | 'operator_rule';
      readonly address: string;
      readonly family: 4 | 6;
      readonly rule?: string;
    }
  | { readonly verdict: 'denied'; readonly reason: AddressDenial; readonly address?: string; readonly rule?: string };

/** What of a policy judges addresses. */
export type AddressPolicy = Pick<EgressPolicy, 'addressRules' | 'ownAddresses'>;

/**
 * Judges one address that `host` (normalised) resolved to. Addresses of the node, and everything that is not the public internet in any
 * form (mapped, compatible, NAT64, 6to4, Teredo), are denied unless an operator's address rule for that host names them.
 */
export function decideAddress(input: { readonly policy: AddressPolicy; readonly host: string; readonly address: string }): AddressDecision {
  const address = parseIp(input.address);
  if (address === undefined) return { verdict: 'denied', reason: 'unparsable_address' };
  const own = decideOwn(input, address);
  if (own !== undefined) return own;
  const translated = translatedIpv4(address);
  const special = findSpecialRange(translated ?? address);
  if (translated !== undefined && (special !== undefined || isOwn(input.policy, translated))) {
    return { verdict: 'denied', reason: 'translated_address', address: address.text, rule: '64:ff9b::/96' };
  }
  if (special === undefined) return { verdict: 'allowed', reason: 'public_address', address: address.text, family: address.family };
  const rule = special.openable ? openingRule(input, address, special.reason === 'metadata_address') : undefined;
  return rule === undefined
    ? { verdict: 'denied', reason: special.reason, address: address.text, rule: special.text }
    : { verdict: 'allowed', reason: 'operator_rule', address: address.text, family: address.family, rule };
}

function isOwn(policy: AddressPolicy, address: IpAddress): boolean {
  return policy.ownAddresses.some((own) => sameAddress(own, address));
}

function decideOwn(input: { policy: AddressPolicy; host: string }, address: IpAddress): AddressDecision | undefined {
  if (!isOwn(input.policy, address)) return undefined;
  const rule = openingRule(input, address, true);
  return rule === undefined
    ? { verdict: 'denied', reason: 'own_address', address: address.text }
    : { verdict: 'allowed', reason: 'operator_rule', address: address.text, family: address.family, rule };
}

/** The text of the operator's rule that opens `address` for the host; `alone`: only a rule that names this one address counts. */
function openingRule(input: { policy: AddressPolicy; host: string }, address: IpAddress, alone: boolean): string | undefined {
  for (const rule of input.policy.addressRules) {
    if (rule.host !== input.host && !(rule.subdomains && isUnder(input.host, rule.host))) continue;
    for (const { text, range } of rule.ranges) {
      if (alone && range.prefix !== range.base.bytes.length * 8) continue;
      if (inRange(address, range)) return `${rule.subdomains ? '.' : ''}${rule.host}=${text}`;
    }
  }
  return undefined;
}
