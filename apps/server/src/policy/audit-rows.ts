import { sql } from 'drizzle-orm';
import * as z from 'zod';
import type { ServerContext } from '../context.ts';

/** Kinds of lines (purpose, host, port, rule, reason) that an explanation lists. */
export const MAX_EXPLAINED = 1_000;
/** Open tunnels that an explanation lists. */
export const MAX_OPEN = 200;

const target = {
  purpose: z.enum(['setup', 'agent', 'check']),
  host: z.string().nullable(),
  port: z.coerce.number().int().nullable(),
  rule: z.string().nullable(),
};
const kindSchema = z.object({
  ...target,
  event: z.enum(['refused', 'end']),
  reason: z.string(),
  connections: z.coerce.number().int(),
  bytesIn: z.coerce.number().int(),
  bytesOut: z.coerce.number().int(),
});
const openSchema = z.object({
  ...target,
  turnId: z.string(),
  attempt: z.coerce.number().int(),
  connection: z.coerce.number().int(),
  address: z.string().nullable(),
  since: z.coerce.date().transform((date) => date.toISOString()),
});
const totalsSchema = z.object({
  tunnels: z.coerce.number().int(),
  refusals: z.coerce.number().int(),
  bytesIn: z.coerce.number().int(),
  bytesOut: z.coerce.number().int(),
});
export type AuditKind = z.infer<typeof kindSchema>;

const line = sql.raw(`body->'body'->'line'`);
const ofEgress = sql.raw(`body->>'kind' = 'turn.event' and body->'body'->>'kind' = 'egress'`);
/** An open line and no later end line of the same connection. */
const unended = sql.raw(`o.body->>'kind' = 'turn.event' and o.body->'body'->>'kind' = 'egress' and o.body->'body'->'line'->>'event' = 'open'
  and not exists (select 1 from events e where e.mission_id = o.mission_id and e.seq > o.seq
    and e.body->>'kind' = 'turn.event' and e.body->'body'->>'kind' = 'egress' and e.body->'body'->'line'->>'event' = 'end'
    and e.body->>'turnId' = o.body->>'turnId' and e.body->>'attempt' = o.body->>'attempt'
    and e.body->'body'->'line'->>'purpose' = o.body->'body'->'line'->>'purpose'
    and e.body->'body'->'line'->>'connection' = o.body->'body'->'line'->>'connection')`);

/** The stored audit of a mission, counted by kind; one more than {@link MAX_EXPLAINED} where there are more. A tunnel whose attempt ended first has no bytes. */
export async function countAudit({ db }: Pick<ServerContext, 'db'>, missionId: string): Promise<AuditKind[]> {
  const found = await db.execute(sql`
    with lines as (
      select ${line}->>'event' as event, ${line} as line from events
      where mission_id = ${missionId} and ${ofEgress} and ${line}->>'event' in ('refused', 'end')
      union all
      select 'end' as event, o.body->'body'->'line' as line from events o
      join attempts a on a.turn_id = o.body->>'turnId' and a.attempt = (o.body->>'attempt')::int
      where o.mission_id = ${missionId} and ${unended} and a.state = 'ended'
    )
    select event, line->>'purpose' as purpose, line->>'host' as host, line->>'port' as port, line->>'rule' as rule,
      case when event = 'end' then '' else line->>'reason' end as reason, count(*) as connections,
      coalesce(sum((line->>'bytesIn')::bigint), 0) as "bytesIn", coalesce(sum((line->>'bytesOut')::bigint), 0) as "bytesOut"
    from lines
    group by 1, 2, 3, 4, 5, 6
    order by connections desc, host, port, purpose, reason, rule, event
    limit ${MAX_EXPLAINED + 1}`);
  return found.rows.map((row) => kindSchema.parse(row));
}

/** The tunnels of attempts under way that are open by what was reported, oldest first; at most {@link MAX_OPEN}. */
export async function openTunnels({ db }: Pick<ServerContext, 'db'>, missionId: string): Promise<z.infer<typeof openSchema>[]> {
  const found = await db.execute(sql`
    select o.at as since, o.body->>'turnId' as "turnId", o.body->>'attempt' as attempt, o.body->'body'->'line'->>'connection' as connection,
      o.body->'body'->'line'->>'purpose' as purpose, o.body->'body'->'line'->>'host' as host, o.body->'body'->'line'->>'port' as port,
      o.body->'body'->'line'->>'rule' as rule, o.body->'body'->'line'->>'address' as address
    from events o join attempts a on a.turn_id = o.body->>'turnId' and a.attempt = (o.body->>'attempt')::int
    where o.mission_id = ${missionId} and ${unended} and a.state <> 'ended'
    order by o.seq
    limit ${MAX_OPEN}`);
  return found.rows.map((row) => openSchema.parse(row));
}

/** The whole audit in four numbers. */
export async function totalsOf({ db }: Pick<ServerContext, 'db'>, missionId: string): Promise<z.infer<typeof totalsSchema>> {
  const found = await db.execute(sql`
    select count(*) filter (where ${line}->>'event' = 'open') as tunnels, count(*) filter (where ${line}->>'event' = 'refused') as refusals,
      coalesce(sum((${line}->>'bytesIn')::bigint), 0) as "bytesIn", coalesce(sum((${line}->>'bytesOut')::bigint), 0) as "bytesOut"
    from events where mission_id = ${missionId} and ${ofEgress}`);
  return totalsSchema.parse(found.rows[0]);
}
