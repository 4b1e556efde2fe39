import { type AllowRule, formatAllowRule, type TunnelProtocol } from './allow-entry.ts';
import type { EgressPolicy } from './effective-policy.ts';
import { normaliseHost } from './host-name.ts';
import { rulesCovering } from './intersect-rules.ts';
import type { HostDenial, HostFault } from './reasons.ts';

/** The verdict on a target by name and port. `host` is the normalised name, the only one to look up, dial and log. */
export type HostDecision =
  | {
      readonly verdict: 'allowed';
      readonly reason: 'listed';
      readonly host: string;
      readonly port: number;
      readonly protocol: TunnelProtocol;
      readonly rule: string;
    }
  | { readonly verdict: 'denied'; readonly reason: HostDenial; readonly host?: string; readonly port: number; readonly rule?: string }
  | { readonly verdict: 'malformed'; readonly reason: HostFault; readonly port: number };

/**
 * Judges a target before any look-up. `host` is the text as the guest sent it; it is normalised here once.
 * Rules only add: a target passes when any rule covers it, and of several the one that lets most bytes through (`tcp`), then the nearest, is named.
 */
export function decideHost(input: { readonly policy: EgressPolicy; readonly host: string; readonly port: number }): HostDecision {
  const { policy, port } = input;
  const name = normaliseHost(input.host);
  if (!name.ok) {
    return name.verdict === 'malformed'
      ? { verdict: 'malformed', reason: name.reason, port }
      : { verdict: 'denied', reason: name.reason, port };
  }
  const { host } = name;
  if (policy.rules.length === 0) return { verdict: 'denied', reason: policy.emptyReason, host, port };
  const covering = rulesCovering(policy.index, host);
  const [first] = covering;
  if (first === undefined) return { verdict: 'denied', reason: 'not_listed', host, port };
  const rule = strongest(covering.filter((candidate) => candidate.port === port));
  if (rule === undefined) return { verdict: 'denied', reason: 'port_not_listed', host, port, rule: formatAllowRule(first) };
  return { verdict: 'allowed', reason: 'listed', host, port, protocol: rule.protocol, rule: formatAllowRule(rule) };
}

function strongest(rules: readonly AllowRule[]): AllowRule | undefined {
  return rules.find((rule) => rule.protocol === 'tcp') ?? rules[0];
}
