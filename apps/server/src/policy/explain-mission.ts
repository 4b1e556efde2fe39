import { HOST_DENIALS, type OperatorPolicy, type PolicyPart, type ReachRequest } from '@firecrew/egress-policy';
import { describeReach } from '@firecrew/policy-file';
import type { PolicyExplanation } from '@firecrew/protocol';
import type { ServerContext } from '../context.ts';
import { type AuditKind, countAudit, MAX_EXPLAINED, openTunnels, totalsOf } from './audit-rows.ts';

/** What a mission reached and was refused, from the stored audit, with what would allow it by the policy of now to one that learns nothing. */
export async function explainMission(
  context: Pick<ServerContext, 'db' | 'policy'>,
  missionId: string,
  request: ReachRequest,
): Promise<PolicyExplanation> {
  const rows = await countAudit(context, missionId);
  const listed = rows.slice(0, MAX_EXPLAINED);
  const { policy, origin } = context.policy;
  const ordinary = { ...request, learning: false };
  return {
    missionId,
    policy: { source: origin.source, digest: origin.digest },
    learning: request.learning === true,
    reached: listed.flatMap((row) => (row.event === 'end' ? [explainReached(policy, ordinary, row)] : [])),
    open: (await openTunnels(context, missionId)).map((tunnel) => ({ ...tunnel, bytesIn: null, bytesOut: null })),
    refused: listed.flatMap((row) => (row.event === 'refused' ? [explainRefusal(policy, ordinary, row)] : [])),
    totals: await totalsOf(context, missionId),
    truncated: rows.length > MAX_EXPLAINED,
  };
}

function explainReached(policy: OperatorPolicy, request: ReachRequest, row: AuditKind): PolicyExplanation['reached'][number] {
  const { purpose, host, port, rule, connections, bytesIn, bytesOut } = row;
  const common = { purpose, host, port, rule, connections, bytesIn, bytesOut };
  if (host === null || port === null) return { ...common, remedy: null, allowedNow: false };
  const now = describeReach({ policy, request, part: partOf(purpose), host, port }, '');
  // Raw bytes need a rule that says so: one for TLS would not let the same through.
  const isEnough = now.verdict === 'allowed' && (!isRaw(rule) || isRaw(now.rule));
  const remedy = now.remedy ?? (isEnough ? null : ({ by: 'both', entry: `${host}:${port}` } as const));
  return { ...common, remedy: remedy === null ? null : withProtocol(remedy, rule), allowedNow: isEnough };
}

/** The entry of a remedy for what the rule let through. A named rule may be for TLS alone, so it is no remedy for raw bytes. */
function withProtocol<Remedy extends { readonly entry: string }>(remedy: Remedy, rule: string | null): Remedy {
  if (!isRaw(rule) || remedy.entry.startsWith('rule:')) return remedy;
  return { ...remedy, entry: `${/:\d+$/.test(remedy.entry) ? remedy.entry : `${remedy.entry}:443`}/tcp` };
}

function isRaw(rule: string | null): boolean {
  return rule?.endsWith('/tcp') === true;
}

function partOf(purpose: AuditKind['purpose']): PolicyPart {
  return purpose === 'setup' ? 'setup' : 'run';
}

/** A refusal with what would allow it. A reason that is not one of names and ports has no remedy among rules of names. */
function explainRefusal(policy: OperatorPolicy, request: ReachRequest, row: AuditKind): PolicyExplanation['refused'][number] {
  const { purpose, host, port, reason, rule, connections } = row;
  const isOfNames = HOST_DENIALS.some((denial) => denial === reason);
  const now =
    host === null || port === null || !isOfNames ? undefined : describeReach({ policy, request, part: partOf(purpose), host, port }, '');
  return { purpose, host, port, reason, rule, connections, remedy: now?.remedy ?? null, allowedNow: now?.verdict === 'allowed' };
}
