import { HOST_DENIALS, type OperatorPolicy, type PolicyPart, type ReachRequest } from '@firecrew/egress-policy';
import { describeReach } from '@firecrew/policy-file';
import type { PolicyExplanation } from '@firecrew/protocol';
import { sql } from 'drizzle-orm';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';

/** Kinds of lines (purpose, host, port, rule, reason) that an explanation lists. */
export const MAX_EXPLAINED = 1_000;

const rowSchema = z.object({
  event: z.enum(['refused', 'end']),
  purpose: z.enum(['setup', 'agent', 'check']),
  host: z.string().nullable(),
  port: z.coerce.number().int().nullable(),
  rule: z.string().nullable(),
  reason: z.string(),
  connections: z.coerce.number().int(),
  bytesIn: z.coerce.number().int(),
  bytesOut: z.coerce.number().int(),
});
type Row = z.infer<typeof rowSchema>;

/** What a mission reached and what it was refused, from the stored audit, with what would allow it by the policy of now. */
export async function explainMission(
  context: Pick<ServerContext, 'db' | 'policy'>,
  missionId: string,
  request: ReachRequest,
): Promise<PolicyExplanation> {
  const rows = await auditOf(context, missionId);
  const listed = rows.slice(0, MAX_EXPLAINED);
  const { policy, origin } = context.policy;
  return {
    missionId,
    policy: { source: origin.source, digest: origin.digest },
    reached: listed.flatMap(({ event, reason: _reason, ...row }) => (event === 'end' ? [row] : [])),
    refused: listed.flatMap((row) => (row.event === 'refused' ? [explainRefusal(policy, request, row)] : [])),
    truncated: rows.length > MAX_EXPLAINED,
  };
}

/** A refusal with what would allow it. A reason that is not one of names and ports has no remedy among rules of names. */
function explainRefusal(policy: OperatorPolicy, request: ReachRequest, row: Row): PolicyExplanation['refused'][number] {
  const { purpose, host, port, reason, rule, connections } = row;
  const part: PolicyPart = purpose === 'setup' ? 'setup' : 'run';
  const isOfNames = HOST_DENIALS.some((denial) => denial === reason);
  const now = host === null || port === null || !isOfNames ? undefined : describeReach({ policy, request, part, host, port }, '');
  return { purpose, host, port, reason, rule, connections, remedy: now?.remedy ?? null, allowedNow: now?.verdict === 'allowed' };
}

async function auditOf({ db }: Pick<ServerContext, 'db'>, missionId: string): Promise<Row[]> {
  const line = sql.raw(`body->'body'->'line'`);
  const found = await db.execute(sql`
    select ${line}->>'event' as event, ${line}->>'purpose' as purpose, ${line}->>'host' as host, ${line}->>'port' as port,
      ${line}->>'rule' as rule, case when ${line}->>'event' = 'end' then '' else ${line}->>'reason' end as reason,
      count(*) as connections,
      coalesce(sum((${line}->>'bytesIn')::bigint), 0) as "bytesIn", coalesce(sum((${line}->>'bytesOut')::bigint), 0) as "bytesOut"
    from events
    where mission_id = ${missionId} and body->>'kind' = 'turn.event' and body->'body'->>'kind' = 'egress'
      and ${line}->>'event' in ('refused', 'end')
    group by 1, 2, 3, 4, 5, 6
    order by connections desc, host, port, purpose, reason
    limit ${MAX_EXPLAINED + 1}`);
  return found.rows.map((row) => rowSchema.parse(row));
}
