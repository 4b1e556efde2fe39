import { type AllowEntry, type AllowRule, DEFAULT_PORT, formatAllowRule, parseAllowEntry } from './allow-entry.ts';
import { decideHost, type HostDecision } from './decide-host.ts';
import { createPolicy } from './effective-policy.ts';
import { intersectRules } from './intersect-rules.ts';
import { LEARN_ORIGIN, type OperatorPolicy, RULE_WORD, type WantedRule } from './operator-policy.ts';
import type { PolicyPart } from './policy-presets.ts';
import type { HostDenial, HostFault } from './reasons.ts';

/** What one mission asks for. Entries are host entries or `rule:NAME`. */
export interface ReachRequest {
  readonly backend: string;
  /** The hosts of the backend's manifest, for the agent. */
  readonly backendHosts: readonly AllowEntry[];
  readonly asked: Readonly<Record<PolicyPart, readonly AllowEntry[]>>;
  /** It gets all that is open to learning runs besides, without asking; absent: it does not. */
  readonly learning?: boolean;
}

/** Why an entry of a mission adds nothing. */
export type UnusableReason = 'bad_entry' | 'rule_unknown' | 'rule_not_for_part';

/** What a mission reaches in one part. */
export interface PartReach {
  /** Ceiling ∩ (backend ∪ mission). */
  readonly rules: readonly AllowRule[];
  readonly wanted: readonly WantedRule[];
  /** Those of `wanted` that the mission and its backend's manifest ask for; the others are the policy's own. */
  readonly asked: readonly WantedRule[];
  readonly ceiling: readonly AllowRule[] | 'no_ceiling';
  readonly unusable: readonly { readonly entry: string; readonly reason: UnusableReason; readonly message: string }[];
}

/** The reach of a mission in one part of its phases: that of a learning run has what the policy opens to those, too. An entry that cannot be used adds nothing and is named. */
export function reachOf(policy: OperatorPolicy, request: ReachRequest, part: PolicyPart): PartReach {
  const unusable: PartReach['unusable'][number][] = [];
  const read = (entry: AllowEntry, origin: string): WantedRule[] => {
    if (typeof entry === 'string' && entry.startsWith(RULE_WORD)) {
      const rule = policy.rules.get(entry.slice(RULE_WORD.length));
      if (rule?.parts.includes(part) === true) return rule.allow.map((allowed) => ({ rule: allowed, origin: entry }));
      const reason = rule === undefined ? 'rule_unknown' : 'rule_not_for_part';
      const message = rule === undefined ? `the policy has no ${entry}` : `${entry} is not for the part ${part}`;
      unusable.push({ entry, reason, message });
      return [];
    }
    const parsed = parseAllowEntry(entry);
    if (parsed.ok) return [{ rule: parsed.rule, origin }];
    unusable.push({ entry: parsed.problem.entry, reason: 'bad_entry', message: parsed.problem.message });
    return [];
  };
  const ofBackend = part === 'run' ? request.backendHosts.flatMap((entry) => read(entry, `backend ${request.backend}`)) : [];
  const ofMission = request.asked[part].flatMap((entry) => read(entry, 'mission'));
  const wanted = [...ofBackend, ...(policy.backends.get(request.backend)?.[part] ?? []), ...policy.missions[part], ...ofMission];
  const asked = [...ofBackend, ...ofMission];
  const opened = request.learning === true ? openToLearning(policy, part) : [];
  wanted.push(...opened.map((rule) => ({ rule, origin: LEARN_ORIGIN })));
  const bound = policy.ceiling[part];
  const ceiling = bound === 'no_ceiling' ? bound : [...bound, ...opened];
  const unique = [...new Map(wanted.map(({ rule }) => [formatAllowRule(rule), rule])).values()];
  return { rules: ceiling === 'no_ceiling' ? unique : intersectRules(unique, ceiling), wanted, asked, ceiling, unusable };
}

/** Who has to allow what is refused, and the entry that would do it. */
export interface ReachRemedy {
  /** `mission`: it need only ask. `operator`: the ceiling has to be raised. `both`: neither has it. */
  readonly by: 'mission' | 'operator' | 'both';
  /** An entry of an allow-list, or `rule:NAME`. */
  readonly entry: string;
}

/** The answer to "may it reach this?", by name and port; addresses are judged when they are known. */
export type ReachDecision =
  | {
      readonly verdict: 'allowed';
      readonly reason: 'listed';
      readonly host: string;
      readonly port: number;
      readonly rule: string;
      readonly origin: string;
    }
  | {
      readonly verdict: 'denied';
      readonly reason: HostDenial | 'above_ceiling';
      readonly host?: string;
      readonly port: number;
      readonly rule?: string;
      readonly remedy?: ReachRemedy;
    }
  | { readonly verdict: 'malformed'; readonly reason: HostFault; readonly port: number };

/** Judges one target for one part of a mission, with who asked for it, and for a refusal what would allow it. Nothing is looked up. */
export function decideReach(input: {
  readonly policy: OperatorPolicy;
  readonly request: ReachRequest;
  readonly part: PolicyPart;
  readonly host: string;
  readonly port?: number;
}): ReachDecision {
  const { policy, part, host, port = DEFAULT_PORT } = input;
  const reach = reachOf(policy, input.request, part);
  const judge = (rules: readonly AllowRule[]): HostDecision => decideHost({ policy: createPolicy({ rules }), host, port });
  const verdict = judge(reach.rules);
  if (verdict.verdict === 'malformed') return verdict;
  if (verdict.verdict === 'allowed') {
    const origin = reach.wanted.find(({ rule }) => judge([rule]).verdict === 'allowed')?.origin ?? 'mission';
    return { verdict: 'allowed', reason: 'listed', host: verdict.host, port, rule: verdict.rule, origin };
  }
  if (verdict.host === undefined) return verdict;
  const asked = judge(reach.wanted.map(({ rule }) => rule)).verdict === 'allowed';
  const below = reach.ceiling === 'no_ceiling' || judge(reach.ceiling).verdict === 'allowed';
  const by = asked ? 'operator' : below ? 'mission' : 'both';
  const named = by === 'mission' ? namedRuleFor(policy, part, (rules) => judge(rules).verdict === 'allowed') : undefined;
  const entry = named ?? formatAllowRule({ host: verdict.host, subdomains: false, port, protocol: 'tls' });
  return { ...verdict, reason: asked ? 'above_ceiling' : verdict.reason, remedy: { by, entry } };
}

/** A part that is not open to learning is one of an ordinary run. */
function openToLearning(policy: OperatorPolicy, part: PolicyPart): readonly AllowRule[] {
  const open = policy.learn[part];
  return open === 'not_allowed' ? [] : open;
}

function namedRuleFor(policy: OperatorPolicy, part: PolicyPart, allows: (rules: readonly AllowRule[]) => boolean): string | undefined {
  const found = [...policy.rules].find(([, rule]) => rule.parts.includes(part) && allows(rule.allow));
  return found === undefined ? undefined : `${RULE_WORD}${found[0]}`;
}
