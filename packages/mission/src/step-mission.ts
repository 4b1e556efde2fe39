/*
 * Mission                                    Phase                                         Turn
 *
 *   draft ──launch──> running                  pending ──start──> running                    waiting ──reserved──> running
 *                      │ all phases done         │                  │ run ended,               ^                     │ attempt ended
 *      retry           ├──> completed            │ earlier one      │ result delivered         │ try again           ├──> ended
 *   (failed only)      ├──> failed <─┐           │ failed           ├──> completed             └─────────────────────┘
 *        └─────────────┤  (retry)    │           v                  └──> failed
 *                      └──> cancelled            skipped ──retry of an earlier one──> pending
 *
 * One event in; the new state and the facts to tell out. What is to be done next is read off the state by
 * `wantedActions`, so a crash between "stored" and "done" loses nothing: the same action is wanted again.
 */
import type { Attempt, MissionAggregate, Phase, RunPlanner, TreeRef, Turn } from './aggregate.ts';
import type { Outcome } from './outcome-table.ts';
import type { RefusalCode } from './reasons.ts';
import { closePhase, reopenPhases, skipUnreachable, startPhase } from './step-phase.ts';
import { applyAttemptEnd, applyCancelToTurn, newTurn, reserveAttempt } from './step-turn.ts';

/** What happened, as the server, the placer or a node reports it. */
export type MissionInput =
  | { readonly type: 'launch' }
  | { readonly type: 'attempt_reserved'; readonly turnId: string; readonly epoch: number; readonly nodeId: string; readonly node: string }
  | { readonly type: 'placement_refused'; readonly turnId: string; readonly outcome: Outcome; readonly detail: string }
  | { readonly type: 'attempt_accepted'; readonly turnId: string; readonly attempt: number; readonly epoch: number }
  | {
      readonly type: 'attempt_ended';
      readonly turnId: string;
      readonly attempt: number;
      readonly epoch: number;
      readonly outcome: Outcome;
      readonly detail: string;
      readonly tree: TreeRef | null;
      readonly verified: boolean;
    }
  | { readonly type: 'delivery_recorded'; readonly phaseId: string; readonly ok: boolean; readonly detail: string }
  /** `detail` says why, where it is not a caller's wish: what the cancellation ends carries it. */
  | { readonly type: 'cancel'; readonly detail?: string }
  | { readonly type: 'retry'; readonly phaseId?: string };

/** What is told to those who follow the mission. */
export type MissionFact =
  | { readonly kind: 'mission.started' }
  | { readonly kind: 'mission.cancel_requested' }
  | { readonly kind: 'mission.retried'; readonly phaseId: string; readonly reopened: number }
  | {
      readonly kind: 'phase.started';
      readonly phaseId: string;
      readonly position: number;
      readonly phaseKind: string;
      readonly iteration: number;
    }
  | { readonly kind: 'phase.completed'; readonly phaseId: string }
  | { readonly kind: 'phase.failed'; readonly phaseId: string; readonly outcome: Outcome; readonly detail: string }
  | { readonly kind: 'phase.skipped'; readonly phaseId: string }
  | {
      readonly kind: 'turn.placed';
      readonly phaseId: string;
      readonly turnId: string;
      readonly attempt: number;
      readonly nodeId: string;
      readonly node: string;
    }
  | { readonly kind: 'turn.accepted'; readonly phaseId: string; readonly turnId: string; readonly attempt: number }
  | {
      readonly kind: 'turn.ended';
      readonly phaseId: string;
      readonly turnId: string;
      readonly attempt: number;
      readonly outcome: Outcome;
      readonly detail: string;
      readonly retrying: boolean;
    }
  | { readonly kind: 'mission.closed'; readonly state: 'completed' | 'failed' | 'cancelled' };

/** What the machine needs from outside: fresh ids and the topology of a phase. */
export interface StepContext {
  readonly newId: (kind: 'run' | 'turn') => string;
  readonly planner: RunPlanner;
}

export type StepResult =
  | { readonly ok: true; readonly mission: MissionAggregate; readonly facts: readonly MissionFact[] }
  | { readonly ok: false; readonly code: RefusalCode };

const refuse = (code: RefusalCode): StepResult => ({ ok: false, code });

/** Applies one event to a mission: the new state and what is told, or a refusal that changes nothing. */
export function stepMission(mission: MissionAggregate, input: MissionInput, context: StepContext): StepResult {
  switch (input.type) {
    case 'launch':
      return launch(mission, context);
    case 'attempt_reserved':
      return onReserved(mission, input);
    case 'placement_refused':
      return onPlacementRefused(mission, input, context);
    case 'attempt_accepted':
      return onAccepted(mission, input);
    case 'attempt_ended':
      return onAttemptEnded(mission, input, context);
    case 'delivery_recorded':
      return onDelivered(mission, input, context);
    case 'cancel':
      return cancel(mission, input.detail, context);
    case 'retry':
      return retry(mission, input.phaseId, context);
  }
}

function launch(mission: MissionAggregate, context: StepContext): StepResult {
  if (mission.state !== 'draft') return refuse('mission_not_draft');
  if (mission.phases.length === 0) return refuse('mission_without_phases');
  return settle({ ...mission, state: 'running' }, [{ kind: 'mission.started' }], context);
}

function onReserved(mission: MissionAggregate, input: Extract<MissionInput, { type: 'attempt_reserved' }>): StepResult {
  const turn = findTurn(mission, input.turnId);
  if (turn === undefined) return refuse('turn_not_found');
  if (mission.state !== 'running' || turn.state !== 'waiting') return refuse('turn_not_waiting');
  const next = reserveAttempt(turn, input.epoch, input.nodeId);
  const fact = {
    kind: 'turn.placed',
    phaseId: turn.phaseId,
    turnId: turn.id,
    attempt: next.attempt,
    nodeId: input.nodeId,
    node: input.node,
  } as const;
  return { ok: true, mission: withTurn(mission, next), facts: [fact] };
}

function onPlacementRefused(
  mission: MissionAggregate,
  input: Extract<MissionInput, { type: 'placement_refused' }>,
  context: StepContext,
): StepResult {
  const turn = findTurn(mission, input.turnId);
  if (turn === undefined) return refuse('turn_not_found');
  if (mission.state !== 'running' || turn.state !== 'waiting') return refuse('turn_not_waiting');
  const ended: Turn = { ...turn, state: 'ended' };
  const fact = turnEnded(ended, ended.attempt, input.outcome, input.detail, false);
  return settle(endRun(withTurn(mission, ended), ended, input.outcome, input.detail, null), [fact], context);
}

function onAccepted(mission: MissionAggregate, input: Extract<MissionInput, { type: 'attempt_accepted' }>): StepResult {
  const found = findAttempt(mission, input);
  if (!found.ok) return found;
  if (found.attempt.state === 'accepted') return { ok: true, mission, facts: [] };
  const attempts = found.turn.attempts.map((item) => (item === found.attempt ? { ...item, state: 'accepted' as const } : item));
  const fact = { kind: 'turn.accepted', phaseId: found.turn.phaseId, turnId: found.turn.id, attempt: input.attempt } as const;
  return { ok: true, mission: withTurn(mission, { ...found.turn, attempts }), facts: [fact] };
}

function onAttemptEnded(
  mission: MissionAggregate,
  input: Extract<MissionInput, { type: 'attempt_ended' }>,
  context: StepContext,
): StepResult {
  const found = findAttempt(mission, input);
  if (!found.ok) return found;
  const detail = detailOfEnd(mission, input);
  const { turn, retrying } = applyAttemptEnd(found.turn, { ...input, detail }, mission.cancelRequested);
  const fact = turnEnded(turn, input.attempt, input.outcome, detail, retrying);
  const stepped = withTurn(mission, turn);
  if (retrying) return settle(stepped, [fact], context);
  if (input.outcome.kind !== 'completed') {
    return settle(endRun(stepped, turn, input.outcome, detail, resultOf(turn, input.attempt)), [fact], context);
  }
  return settle(advanceRun(stepped, turn, input.attempt, context), [fact], context);
}

/** What a cancellation ended says why, as far as that was not a caller's wish; what ended by itself keeps its own words. */
function detailOfEnd(mission: MissionAggregate, end: { readonly outcome: Outcome; readonly detail: string }): string {
  const wasEnded = end.outcome.kind === 'cancelled' || end.outcome.kind === 'lost';
  if (!wasEnded || mission.cancelDetail === undefined) return end.detail;
  return end.detail === '' ? mission.cancelDetail : `${mission.cancelDetail}; ${end.detail}`;
}

/** A turn of a run has succeeded: the next turns of its topology, or the end of the run. */
function advanceRun(mission: MissionAggregate, turn: Turn, attempt: number, context: StepContext): MissionAggregate {
  const phase = mission.phases.find((item) => item.id === turn.phaseId);
  if (phase?.run === null || phase === undefined) return mission;
  const step = context.planner.advance(phase.run.checkpoint, turn);
  if (step.done) return endRun(mission, turn, { kind: 'completed' }, '', resultOf(turn, attempt));
  const run = { ...phase.run, checkpoint: step.checkpoint };
  const turns = step.turns.map((wanted) => newTurn(context.newId('turn'), phase.id, run.id, wanted));
  return { ...withPhase(mission, { ...phase, run }), turns: [...mission.turns, ...turns] };
}

/** The run has ended: its result is wanted delivered where there is one, else the phase closes at once. */
function endRun(mission: MissionAggregate, turn: Turn, outcome: Outcome, detail: string, result: Phase['result']): MissionAggregate {
  const phase = mission.phases.find((item) => item.id === turn.phaseId);
  if (phase === undefined) return mission;
  const run =
    phase.run === null ? null : { ...phase.run, state: outcome.kind === 'completed' ? ('completed' as const) : ('failed' as const) };
  return withPhase(mission, { ...phase, run, outcome, detail, result, delivery: result === null ? 'done' : 'wanted' });
}

function onDelivered(
  mission: MissionAggregate,
  input: Extract<MissionInput, { type: 'delivery_recorded' }>,
  context: StepContext,
): StepResult {
  const phase = mission.phases.find((item) => item.id === input.phaseId);
  if (phase === undefined) return refuse('phase_not_found');
  if (phase.delivery !== 'wanted') return refuse('delivery_not_wanted');
  const detail = input.ok ? phase.detail : [phase.detail, input.detail].filter((text) => text !== '').join('; ');
  return settle(withPhase(mission, { ...phase, delivery: 'done', detail, deliveryFailed: !input.ok }), [], context);
}

function cancel(mission: MissionAggregate, why: string | undefined, context: StepContext): StepResult {
  const cancelled = { ...mission, cancelRequested: true, ...(why === undefined ? {} : { cancelDetail: why }) };
  if (mission.state === 'draft')
    return settle(
      { ...cancelled, state: 'cancelled' },
      [{ kind: 'mission.cancel_requested' }, { kind: 'mission.closed', state: 'cancelled' }],
      context,
    );
  if (mission.state !== 'running') return refuse('mission_ended');
  if (mission.cancelRequested) return { ok: true, mission: cancelled, facts: [] };
  const detail = why ?? 'cancelled before it was placed';
  let next: MissionAggregate = cancelled;
  const facts: MissionFact[] = [{ kind: 'mission.cancel_requested' }];
  for (const turn of mission.turns) {
    const ended = applyCancelToTurn(turn);
    if (ended === turn) continue;
    facts.push(turnEnded(ended, ended.attempt, { kind: 'cancelled' }, detail, false));
    next = endRun(withTurn(next, ended), ended, { kind: 'cancelled' }, detail, lastTree(ended));
  }
  return settle(next, facts, context);
}

function retry(mission: MissionAggregate, phaseId: string | undefined, context: StepContext): StepResult {
  if (mission.state !== 'running' && mission.state !== 'failed') return refuse('mission_not_running');
  const wanted = mission.phases.find((phase) => (phaseId === undefined ? phase.state === 'failed' : phase.id === phaseId));
  if (wanted === undefined) return refuse('phase_not_found');
  if (wanted.state !== 'failed') return refuse('phase_not_retryable');
  const reopened = reopenPhases(mission.phases, wanted);
  const fact = { kind: 'mission.retried', phaseId: wanted.id, reopened: reopened.count } as const;
  const { cancelDetail: _, ...rest } = mission;
  return settle({ ...rest, state: 'running', cancelRequested: false, phases: reopened.phases }, [fact], context);
}

/** Moves phases and mission as far as they go by themselves: close, skip, start the next, end. */
function settle(mission: MissionAggregate, facts: readonly MissionFact[], context: StepContext): StepResult {
  const told = [...facts];
  if (mission.state !== 'running') return { ok: true, mission, facts: told };
  let { phases, turns } = mission;
  phases = phases.map((phase) => closePhase(phase, told));
  phases = skipUnreachable(phases, mission.cancelRequested, told);
  if (phases.every((phase) => phase.state !== 'running') && phases.some((phase) => phase.state === 'pending')) {
    const started = startPhase(phases, context, told);
    phases = started.phases;
    turns = [...turns, ...started.turns];
  }
  const open = phases.some((phase) => phase.state === 'running' || phase.state === 'pending');
  if (open) return { ok: true, mission: { ...mission, phases, turns }, facts: told };
  const state = phases.every((phase) => phase.state === 'completed') ? 'completed' : mission.cancelRequested ? 'cancelled' : 'failed';
  told.push({ kind: 'mission.closed', state });
  return { ok: true, mission: { ...mission, phases, turns, state }, facts: told };
}

function turnEnded(turn: Turn, attempt: number, outcome: Outcome, detail: string, retrying: boolean): MissionFact {
  return { kind: 'turn.ended', phaseId: turn.phaseId, turnId: turn.id, attempt, outcome, detail, retrying };
}

/** The newest tree of a turn: that of `attempt`, else of an earlier attempt, since captured work is never dropped. */
function resultOf(turn: Turn, attempt: number): Phase['result'] {
  const own = turn.attempts.find((item) => item.attempt === attempt);
  return own?.tree ? { turnId: turn.id, attempt } : lastTree(turn);
}

function lastTree(turn: Turn): Phase['result'] {
  const last = [...turn.attempts].reverse().find((item) => item.tree !== null);
  return last === undefined ? null : { turnId: turn.id, attempt: last.attempt };
}

function findTurn(mission: MissionAggregate, id: string): Turn | undefined {
  return mission.turns.find((turn) => turn.id === id);
}

function findAttempt(
  mission: MissionAggregate,
  key: { turnId: string; attempt: number; epoch: number },
): { ok: true; turn: Turn; attempt: Attempt } | { ok: false; code: RefusalCode } {
  const turn = findTurn(mission, key.turnId);
  if (turn === undefined) return { ok: false, code: 'turn_not_found' };
  const attempt = turn.attempts.find((item) => item.attempt === key.attempt && item.epoch === key.epoch);
  if (attempt === undefined || attempt.attempt !== turn.attempt) return { ok: false, code: 'attempt_stale' };
  if (attempt.state === 'ended') return { ok: false, code: 'attempt_ended' };
  return { ok: true, turn, attempt };
}

function withTurn(mission: MissionAggregate, turn: Turn): MissionAggregate {
  return { ...mission, turns: mission.turns.map((item) => (item.id === turn.id ? turn : item)) };
}

function withPhase(mission: MissionAggregate, phase: Phase): MissionAggregate {
  return { ...mission, phases: mission.phases.map((item) => (item.id === phase.id ? phase : item)) };
}
