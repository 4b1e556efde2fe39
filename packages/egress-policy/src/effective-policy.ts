import { type AddressRule, type AddressRuleInput, loadAddressRules } from './address-rule.ts';
import { type AllowRule, formatAllowRule } from './allow-entry.ts';
import { type EgressBudgets, type EgressBudgetsInput, loadBudgets } from './budgets.ts';
import { EgressConfigError } from './config-error.ts';
import { indexRules, intersectRules, type RuleIndex } from './intersect-rules.ts';
import { type IpAddress, parseIp } from './ip-address.ts';
import type { HostDenial } from './reasons.ts';

/** What one VM may reach; made by `effectivePolicy` or `createPolicy`, never changed afterwards. */
export interface EgressPolicy {
  readonly rules: readonly AllowRule[];
  readonly addressRules: readonly AddressRule[];
  readonly ownAddresses: readonly IpAddress[];
  /** How much may pass; whoever lets it pass counts. */
  readonly budgets: EgressBudgets;
  readonly index: RuleIndex;
  /** The reason given for every name while the list is empty. */
  readonly emptyReason: Extract<HostDenial, 'empty_list' | 'unknown_backend' | 'no_ceiling_given'>;
}

/** What an operator says of addresses. */
export interface AddressSettings {
  /** The operator's rules for hosts whose addresses are not public; nobody else may set them. */
  readonly addressRules?: readonly AddressRuleInput[];
  /** Every address of the node and of the server, without zones. */
  readonly ownAddresses?: readonly string[];
}

/** What an operator says of how much may pass. */
export interface BudgetSettings {
  readonly budgets?: EgressBudgetsInput | undefined;
}

export interface PolicyInput extends AddressSettings, BudgetSettings {
  readonly rules: readonly AllowRule[];
}

export interface EffectivePolicyInput extends AddressSettings, BudgetSettings {
  /** The operator's ceiling; `'no_ceiling'` lifts it in words, and a missing one (undefined) reaches nothing. */
  readonly ceiling: readonly AllowRule[] | 'no_ceiling' | undefined;
  /** The hosts of this VM's own backend; undefined when the backend is unknown, which reaches nothing. */
  readonly backendHosts: readonly AllowRule[] | undefined;
  readonly missionHosts: readonly AllowRule[];
}

function parseOwnAddresses(texts: readonly string[]): readonly IpAddress[] {
  const parsed = texts.map((text) => ({ text, address: parseIp(text) }));
  const bad = parsed.filter(({ address }) => address === undefined);
  if (bad.length > 0) {
    throw new EgressConfigError(
      bad.map(({ text }) => ({
        entry: text,
        reason: 'bad_address_range',
        message: `${JSON.stringify(text)}: not an address without a zone`,
      })),
    );
  }
  return parsed.flatMap(({ address }) => (address === undefined ? [] : [address]));
}

function build(input: PolicyInput, emptyReason: EgressPolicy['emptyReason']): EgressPolicy {
  return {
    rules: input.rules,
    addressRules: loadAddressRules(input.addressRules ?? []),
    ownAddresses: parseOwnAddresses(input.ownAddresses ?? []),
    budgets: loadBudgets(input.budgets),
    index: indexRules(input.rules),
    emptyReason,
  };
}

/** A policy from one list of rules; an empty list denies everything. Throws `EgressConfigError` on a bad address rule, own address or budget. */
export function createPolicy(input: PolicyInput): EgressPolicy {
  return build(input, 'empty_list');
}

/**
 * The policy of one VM: the operator's ceiling ∩ (the backend's hosts ∪ the mission's). Whatever is missing reaches nothing.
 * Throws `EgressConfigError` on a bad address rule, own address or budget.
 */
export function effectivePolicy(input: EffectivePolicyInput): EgressPolicy {
  if (input.backendHosts === undefined) return build({ ...input, rules: [] }, 'unknown_backend');
  if (input.ceiling === undefined) return build({ ...input, rules: [] }, 'no_ceiling_given');
  const wanted = uniqueRules([...input.backendHosts, ...input.missionHosts]);
  const rules = input.ceiling === 'no_ceiling' ? wanted : intersectRules(wanted, input.ceiling);
  return build({ ...input, rules }, 'empty_list');
}

function uniqueRules(rules: readonly AllowRule[]): readonly AllowRule[] {
  return [...new Map(rules.map((rule) => [formatAllowRule(rule), rule])).values()];
}

/** The effective list as entry texts, in order, for the line that is logged when a proxy starts. */
export function describePolicy(policy: EgressPolicy): string[] {
  return policy.rules.map(formatAllowRule);
}
