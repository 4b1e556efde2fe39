import type { MissionAggregate } from './aggregate.ts';

/** What a state asks its driver to do. Each may be asked for again after a crash, so each is carried out at least once and applied once by its key. */
export type MissionAction =
  | { readonly type: 'place_turn'; readonly turnId: string }
  | { readonly type: 'start_attempt'; readonly turnId: string; readonly attempt: number; readonly epoch: number; readonly nodeId: string }
  | { readonly type: 'cancel_attempt'; readonly turnId: string; readonly attempt: number; readonly epoch: number; readonly nodeId: string }
  | { readonly type: 'deliver'; readonly phaseId: string; readonly turnId: string; readonly attempt: number; readonly verified: boolean };

/** The actions that the state of a mission asks for now, in a fixed order. */
export function wantedActions(mission: MissionAggregate): MissionAction[] {
  if (mission.state !== 'running') return [];
  const actions: MissionAction[] = [];
  for (const turn of mission.turns) {
    if (turn.state === 'waiting') actions.push({ type: 'place_turn', turnId: turn.id });
    const attempt = turn.attempts.at(-1);
    if (turn.state !== 'running' || attempt === undefined || attempt.state === 'ended') continue;
    const key = { turnId: turn.id, attempt: attempt.attempt, epoch: attempt.epoch, nodeId: attempt.nodeId };
    if (mission.cancelRequested) actions.push({ type: 'cancel_attempt', ...key });
    else if (attempt.state === 'reserved') actions.push({ type: 'start_attempt', ...key });
  }
  for (const phase of mission.phases) {
    if (phase.delivery !== 'wanted' || phase.result === null) continue;
    const { turnId, attempt } = phase.result;
    const made = mission.turns.find((turn) => turn.id === turnId)?.attempts.find((item) => item.attempt === attempt);
    const verified = phase.outcome?.kind === 'completed' && made?.verified === true;
    actions.push({ type: 'deliver', phaseId: phase.id, turnId, attempt, verified });
  }
  return actions;
}
