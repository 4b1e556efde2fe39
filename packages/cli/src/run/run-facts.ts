import type { Delivery, MissionEnd, MissionEvent, PolicyWarning } from '@firecrew/protocol';
import type { Pushed, RunEnded } from './run-event.ts';

/** What of the events of a run is told at its end. */
export interface RunFacts {
  readonly missionId: string;
  readonly end: MissionEnd | undefined;
  readonly isolation: RunEnded['isolation'];
  readonly excluded: RunEnded['excluded'];
  /** The newest delivery of each phase, in the order they were told. */
  readonly deliveries: readonly Delivery[];
  /** What was asked for and the policy left out. */
  readonly warnings: readonly PolicyWarning[];
}

/** A run of which nothing is known yet. */
export function newFacts(missionId: string): RunFacts {
  return { missionId, end: undefined, isolation: null, excluded: [], deliveries: [], warnings: [] };
}

/** The facts after one more event. */
export function learn(facts: RunFacts, event: MissionEvent): RunFacts {
  const { body } = event;
  if (body.kind === 'mission.ended') return { ...facts, end: body.end };
  if (body.kind === 'delivery') return { ...facts, deliveries: [...deliveriesBut(facts, body.delivery.phaseId), body.delivery] };
  if (body.kind === 'mission.retried') return { ...facts, end: undefined, deliveries: deliveriesBut(facts, body.phaseId) };
  if (body.kind === 'notice' && body.warning !== undefined) return { ...facts, warnings: [...facts.warnings, body.warning] };
  if (body.kind !== 'turn.event') return facts;
  if (body.body.kind === 'attempt.started') return { ...facts, isolation: body.body.isolation };
  if (body.body.kind === 'collected') return { ...facts, excluded: body.body.tree.excluded };
  return facts;
}

function deliveriesBut(facts: RunFacts, phaseId: string): Delivery[] {
  return facts.deliveries.filter((delivery) => delivery.phaseId !== phaseId);
}

/** What became of the delivered work on the caller's side. */
export interface BroughtBack {
  readonly branch: string | null;
  readonly pushed: Pushed;
  readonly pushDetail: string;
}

/** The last line of a run. A completed mission whose push failed is a failed run. */
export function endOfRun(facts: RunFacts, back: BroughtBack, failure: RunEnded['error']): RunEnded {
  const { end } = facts;
  const delivery: Delivery | null = end?.delivery ?? null;
  const failed = back.pushed === 'failed' || failure !== null;
  const exitCode = end?.exitCode ?? 1;
  return {
    kind: 'run.ended',
    missionId: facts.missionId,
    missionState: end?.missionState ?? null,
    outcome: end?.outcome ?? null,
    detail: end?.detail ?? '',
    branch: back.branch ?? delivery?.branch ?? null,
    commit: delivery?.commit ?? null,
    baseCommit: delivery?.baseCommit ?? null,
    verified: delivery?.verified ?? false,
    isolation: facts.isolation,
    diffstat: delivery?.diffstat ?? null,
    checkInputsChanged: delivery?.checkInputsChanged ?? [],
    protectedPaths: delivery?.protectedPaths ?? [],
    delivery: delivery?.state ?? null,
    denied: end?.denied ?? [],
    warnings: [...facts.warnings],
    excluded: [...facts.excluded],
    // The branch holds the commits of all phases, and the last delivery names what is true of its own alone.
    leftOut: facts.deliveries.flatMap(({ leftOut }) => leftOut),
    unfiltered: facts.deliveries.flatMap(({ unfiltered }) => unfiltered),
    pushed: back.pushed,
    pushDetail: back.pushDetail,
    exitCode: exitCode === 0 && failed ? 1 : exitCode,
    error: failure,
  };
}
