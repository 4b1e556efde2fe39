/*
 * Phase
 *
 *   pending ──all earlier ones completed──> running ──run ended──> (delivery wanted) ──delivered──┬──> completed
 *      │                                                                                          └──> failed
 *      └──an earlier one failed, or the mission is cancelled──> skipped ──retry of the failed one──> pending
 */

import type { Phase, Turn } from './aggregate.ts';
import { ruleOf } from './outcome-table.ts';
import type { MissionFact, StepContext } from './step-mission.ts';
import { newTurn } from './step-turn.ts';

/** A running phase whose run ended and whose result is dealt with takes its final state. */
export function closePhase(phase: Phase, facts: MissionFact[]): Phase {
  if (phase.state !== 'running' || phase.outcome === null || phase.delivery !== 'done') return phase;
  if (ruleOf(phase.outcome).phase === 'completed' && !phase.deliveryFailed) {
    facts.push({ kind: 'phase.completed', phaseId: phase.id });
    return { ...phase, state: 'completed' };
  }
  facts.push({ kind: 'phase.failed', phaseId: phase.id, outcome: phase.outcome, detail: phase.detail });
  return { ...phase, state: 'failed' };
}

/** Pending phases behind a failed one can never start; with a cancelled mission none can. A phase before the failure stays. */
export function skipUnreachable(phases: readonly Phase[], cancelled: boolean, facts: MissionFact[]): Phase[] {
  let blocked = false;
  return phases.map((phase) => {
    if (phase.state === 'failed') blocked = true;
    if (phase.state !== 'pending' || !(blocked || cancelled)) return phase;
    facts.push({ kind: 'phase.skipped', phaseId: phase.id });
    return { ...phase, state: 'skipped' };
  });
}

/** Starts the first pending phase: a new iteration with a new run and the first turns of its topology. */
export function startPhase(phases: readonly Phase[], context: StepContext, facts: MissionFact[]): { phases: Phase[]; turns: Turn[] } {
  const first = phases.find((phase) => phase.state === 'pending');
  if (first === undefined) return { phases: [...phases], turns: [] };
  const plan = context.planner.start(first);
  const run = { id: context.newId('run'), state: 'running' as const, checkpoint: plan.checkpoint };
  const started: Phase = {
    ...first,
    state: 'running',
    iteration: first.iteration + 1,
    run,
    outcome: null,
    detail: '',
    delivery: 'none',
    deliveryFailed: false,
    result: null,
  };
  facts.push({ kind: 'phase.started', phaseId: first.id, position: first.position, phaseKind: first.kind, iteration: started.iteration });
  return {
    phases: phases.map((phase) => (phase === first ? started : phase)),
    turns: plan.turns.map((wanted) => newTurn(context.newId('turn'), first.id, run.id, wanted)),
  };
}

/** A retry: the failed phase becomes pending, and so does every skipped one behind it. */
export function reopenPhases(phases: readonly Phase[], wanted: Phase): { phases: Phase[]; count: number } {
  let count = 0;
  const next = phases.map((phase) => {
    const reopen = phase === wanted || (phase.position > wanted.position && phase.state === 'skipped');
    if (!reopen) return phase;
    if (phase !== wanted) count += 1;
    return {
      ...phase,
      state: 'pending' as const,
      run: null,
      outcome: null,
      detail: '',
      delivery: 'none' as const,
      deliveryFailed: false,
      result: null,
    };
  });
  return { phases: next, count };
}
