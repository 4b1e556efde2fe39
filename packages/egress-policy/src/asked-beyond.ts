import { type AllowRule, formatAllowRule } from './allow-entry.ts';
import { type ReachRequest, reachOf } from './decide-reach.ts';
import { intersectRules } from './intersect-rules.ts';
import type { OperatorPolicy } from './operator-policy.ts';
import { POLICY_PARTS, type PolicyPart, type PolicyPreset } from './policy-presets.ts';

/** Something that was asked for and that the policy lets through in part or not at all. */
export interface AskedBeyond {
  readonly part: PolicyPart;
  /** Who asked: `mission`, `backend NAME` or `rule:NAME`. */
  readonly origin: string;
  /** What was asked for, as an entry of an allow-list. */
  readonly entry: string;
  /** What of it passes, as entries; empty where nothing does. */
  readonly leaves: readonly string[];
  /** What stands in the way: the policy's own ceiling, else the bound of its preset. */
  readonly bound: 'ceiling' | 'preset';
  readonly preset: PolicyPreset;
}

/**
 * What a mission, or the manifest of its backend, asks for above the ceiling: the effective lists leave it out. In the order of the parts and of
 * the request, each entry once for a part. What the policy itself names is the operator's own affair, and is not told.
 */
export function askedBeyond(policy: OperatorPolicy, request: ReachRequest): readonly AskedBeyond[] {
  return POLICY_PARTS.flatMap((part) => {
    const reach = reachOf(policy, request, part);
    if (reach.ceiling === 'no_ceiling') return [];
    const told = new Map<string, AskedBeyond>();
    for (const { rule, origin } of reach.asked) {
      const entry = formatAllowRule(rule);
      if (told.has(entry) || passesWhole(rule, reach.rules)) continue;
      const leaves = intersectRules([rule], reach.rules).map(formatAllowRule).sort();
      told.set(entry, { part, origin, entry, leaves, bound: boundOf(policy, part, rule), preset: policy.preset });
    }
    return [...told.values()];
  });
}

function boundOf(policy: OperatorPolicy, part: PolicyPart, rule: AllowRule): AskedBeyond['bound'] {
  const given = policy.given[part];
  return given === 'no_ceiling' || passesWhole(rule, given) ? 'preset' : 'ceiling';
}

/** Whether one list lets through all that a rule does. */
function passesWhole(rule: AllowRule, list: readonly AllowRule[]): boolean {
  const text = formatAllowRule(rule);
  return intersectRules([rule], list).some((both) => formatAllowRule(both) === text);
}
