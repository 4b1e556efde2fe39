import { decideReach, type OperatorPolicy, type PolicyPart, type ReachRemedy, type ReachRequest } from '@firecrew/egress-policy';

export interface ReachQuestion {
  readonly policy: OperatorPolicy;
  readonly request: ReachRequest;
  readonly part: PolicyPart;
  readonly host: string;
  readonly port: number;
}

/** A verdict with every field there, as programs are given it; null where a verdict has no such thing. */
export interface ReachAnswer {
  readonly verdict: 'allowed' | 'denied' | 'malformed';
  readonly reason: string;
  readonly part: PolicyPart;
  readonly host: string | null;
  readonly port: number;
  readonly rule: string | null;
  readonly origin: string | null;
  readonly remedy: ReachRemedy | null;
  /** Where the policy is from. */
  readonly policy: string;
}

/** Asks a policy about one target, without running or looking up anything. */
export function describeReach(question: ReachQuestion, source: string): ReachAnswer {
  const decision = decideReach(question);
  const { verdict, reason, port } = decision;
  const common = { verdict, reason, part: question.part, port, policy: source };
  const none = { host: null, rule: null, origin: null, remedy: null };
  if (verdict === 'malformed') return { ...common, ...none };
  if (verdict === 'allowed') return { ...common, ...none, host: decision.host, rule: decision.rule, origin: decision.origin };
  return { ...common, ...none, host: decision.host ?? null, rule: decision.rule ?? null, remedy: decision.remedy ?? null };
}
