import { messageOf } from '@firecrew/base';
import type { CreateMission, TurnEgress } from '@firecrew/protocol';
import { tables } from '@firecrew/store';
import { and, eq, sql } from 'drizzle-orm';
import type { ServerContext } from '../context.ts';
import type { ConnectedNode } from '../nodes/node-registry.ts';
import { noEgress, turnEgress } from './turn-egress.ts';

type TellContext = Pick<ServerContext, 'db' | 'policy' | 'nodes' | 'log'>;

/** Tells every node that is connected here what its open turns may reach by the policy of now. */
export async function tellNodes(context: TellContext): Promise<void> {
  for (const node of context.nodes.all()) await tellNode(context, node);
}

/** Tells a node what its open turns may reach now; a turn whose shim follows that already changes nothing by it. */
export async function tellNode(context: TellContext, node: ConnectedNode, turnId?: string): Promise<void> {
  const { attempts, turns, missions } = tables;
  const open = await context.db
    .select({ turnId: attempts.turnId, attempt: attempts.attempt, epoch: attempts.epoch, spec: missions.spec })
    .from(attempts)
    .innerJoin(turns, eq(turns.id, attempts.turnId))
    .innerJoin(missions, eq(missions.id, turns.missionId))
    .where(
      and(eq(attempts.nodeId, node.id), sql`${attempts.state} <> 'ended'`, ...(turnId === undefined ? [] : [eq(attempts.turnId, turnId)])),
    );
  for (const { spec, ...key } of open) {
    const egress = egressNow(context, key.turnId, spec);
    node.send({ t: 'lease.ack', id: 0, renewed: [], lost: [], egress: [{ ...key, egress }] });
  }
}

/** What cannot be said must not stay what it was: such a turn reaches nothing. */
function egressNow({ policy, log }: TellContext, turnId: string, spec: CreateMission): TurnEgress {
  try {
    return turnEgress(policy, spec);
  } catch (error) {
    log.error({ turn: turnId, detail: messageOf(error) }, 'what the turn may reach cannot be said, so it reaches nothing');
    return noEgress();
  }
}
