import { messageOf } from '@firecrew/base';
import { type MissionAction, wantedActions } from '@firecrew/mission';
import type { ServerContext } from '../context.ts';
import { tellNode } from '../policy/tell-nodes.ts';
import { buildStart } from './build-spec.ts';
import { placeTurns } from './place-turns.ts';

/** Does what the state of a mission asks for. Called as often as anybody likes: each action is applied once by its key. */
export async function driveMission(context: ServerContext, missionId: string): Promise<void> {
  const mission = await context.store.load(missionId);
  if (mission === undefined) return;
  for (const action of wantedActions(mission)) await carryOut(context, missionId, action);
}

async function carryOut(context: ServerContext, missionId: string, action: MissionAction): Promise<void> {
  switch (action.type) {
    case 'place_turn':
      return await placeTurns(context);
    case 'start_attempt':
      return await startAttempt(context, missionId, action);
    case 'cancel_attempt':
      context.nodes
        .get(action.nodeId)
        ?.send({ t: 'turn.cancel', turnId: action.turnId, attempt: action.attempt, epoch: action.epoch, reason: 'cancelled' });
      return;
    case 'deliver':
      // Not awaited: a delivery may last longer than a wake-up, and ends with one of its own.
      context.deliveries.start(context, missionId, action);
      return;
  }
}

/** Tells the node to start an attempt, once on each connection; the node answers a repeated order with what it has. */
async function startAttempt(
  context: ServerContext,
  missionId: string,
  action: Extract<MissionAction, { type: 'start_attempt' }>,
): Promise<void> {
  const node = context.nodes.get(action.nodeId);
  const key = `${action.turnId}.${action.attempt}`;
  if (node === undefined || node.told.has(key)) return;
  node.told.add(key);
  try {
    const { digest } = context.policy.origin;
    node.send(await buildStart(context, missionId, action.turnId));
    // Replaced while it was described: the node did not know the turn when the others were told.
    if (context.policy.origin.digest !== digest) await tellNode(context, node, action.turnId);
  } catch (error) {
    node.told.delete(key);
    context.log.error({ err: error, mission: missionId, turn: action.turnId }, 'the attempt could not be described to its node');
    await context.store.apply(missionId, {
      type: 'attempt_ended',
      turnId: action.turnId,
      attempt: action.attempt,
      epoch: action.epoch,
      outcome: { kind: 'failed_to_start', reason: 'workspace_unavailable' },
      detail: messageOf(error).slice(0, 2000),
      tree: null,
      verified: false,
    });
  }
}
