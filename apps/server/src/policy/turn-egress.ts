import { createHash } from 'node:crypto';
import { type Backend, findBackend } from '@firecrew/backend';
import { CodedError } from '@firecrew/base';
import { formatAllowRule, type OperatorPolicy, type PartReach, POLICY_PARTS, type ReachRequest, reachOf } from '@firecrew/egress-policy';
import { type CreateMission, MAX_ADDRESS_RULES, MAX_ALLOW_ENTRIES, type TurnEgress } from '@firecrew/protocol';

/** The part of a mission that says what it may reach. */
export type Asked = Pick<CreateMission, 'egress' | 'learn'> & { readonly agent: { readonly backend: string } };

/** What the operator of a server says of all missions. */
export interface ReachScope {
  readonly policy: OperatorPolicy;
  readonly backends: readonly Backend[];
}

/** What a mission asks for, and its backend by itself; one whose manifest is gone reaches nothing by itself. */
export function reachRequestOf({ backends }: Pick<ReachScope, 'backends'>, spec: Asked): ReachRequest {
  return {
    backend: spec.agent.backend,
    backendHosts: backends.find(({ name }) => name === spec.agent.backend)?.hosts ?? [],
    asked: { setup: spec.egress.setupAllow, run: spec.egress.allow },
    learning: spec.learn !== undefined,
  };
}

/** Refuses a mission that asks for what means nothing. Throws `backend_unknown`, `allow_list_invalid` and `policy_rule_unknown`. */
export function checkAsked(scope: ReachScope, spec: Asked): void {
  const { policy } = scope;
  findBackend(spec.agent.backend, scope.backends);
  const unusable = POLICY_PARTS.flatMap((part) => reachOf(policy, reachRequestOf(scope, spec), part).unusable);
  const bad = unusable.filter(({ reason }) => reason === 'bad_entry');
  const told = (problems: typeof unusable) => problems.map(({ message }) => message).join('; ');
  if (bad.length > 0)
    throw new CodedError('allow_list_invalid', told(bad), { action: 'Write HOST, .DOMAIN, HOST:PORT, HOST:PORT/tcp or rule:NAME.' });
  if (unusable.length > 0) {
    const names = [...policy.rules].map(([name, { parts }]) => `rule:${name} (${parts.join(', ')})`);
    throw new CodedError('policy_rule_unknown', told(unusable), {
      action: names.length === 0 ? 'The policy of this server has no named rules.' : `There are: ${names.join('; ')}.`,
    });
  }
}

/**
 * The effective lists of a mission's turns: ceiling ∩ (backend ∪ mission) for each part, cut to it already, and the union of both as the
 * bound that a node applies once more. Throws `policy_too_large`.
 */
export function turnEgress(scope: ReachScope, spec: Asked): TurnEgress {
  const { policy } = scope;
  const request = reachRequestOf(scope, spec);
  const [setup, run] = [reachOf(policy, request, 'setup'), reachOf(policy, request, 'run')];
  const [allow, setupAllow] = [textsOf(run), textsOf(setup)];
  const all = [...new Set([...allow, ...setupAllow])];
  const addressRules = [...policy.addressRules, ...spec.egress.addressRules].map(({ host, addresses }) => ({
    host,
    addresses: [...addresses],
  }));
  if (all.length > MAX_ALLOW_ENTRIES || addressRules.length > MAX_ADDRESS_RULES)
    throw new CodedError(
      'policy_too_large',
      `a turn would have ${all.length} hosts and ${addressRules.length} address rules; at most ${MAX_ALLOW_ENTRIES} and ${MAX_ADDRESS_RULES} are sent`,
      { action: 'Name domains (.example.com) in place of their hosts, or ask for less.' },
    );
  const unbound = setup.ceiling === 'no_ceiling' && run.ceiling === 'no_ceiling';
  return withRevision({ allow, setupAllow, ceiling: unbound ? null : all, addressRules, ...budgetsOf(policy) });
}

/** Said where the operator bounds something alone: a node of before budgets refuses a turn that it could not bound. */
function budgetsOf({ budgets }: OperatorPolicy): Pick<TurnEgress, 'budgets'> {
  if (budgets === undefined) return {};
  const { turn, eachHost, hosts } = budgets;
  return { budgets: { ...(turn && { turn }), ...(eachHost && { eachHost }), ...(hosts && { hosts: [...hosts] }) } };
}

/** What a turn gets whose reach cannot be said: nothing. */
export function noEgress(): TurnEgress {
  return withRevision({ allow: [], setupAllow: [], ceiling: [], addressRules: [] });
}

function withRevision(egress: Omit<TurnEgress, 'revision'>): TurnEgress {
  return { revision: createHash('sha256').update(JSON.stringify(egress)).digest('hex'), ...egress };
}

function textsOf(reach: PartReach): string[] {
  return reach.rules.map(formatAllowRule);
}
