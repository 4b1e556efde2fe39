import type { Delivery, MissionEnd, MissionEvent } from '@firecrew/protocol';
import type { Pushed, RunEnded } from './run-event.ts';

/** What of the events of a run is told at its end. */
export interface RunFacts {
  readonly missionId: string;
  readonly end: MissionEnd | undefined;
  readonly isolation: RunEnded['isolation'];
  readonly excluded: RunEnded['excluded'];
}

/** A run of which nothing is known yet. */
export function newFacts(missionId: string): RunFacts {
  return { missionId, end: undefined, isolation: null, excluded: [] };
}

/** The facts after one more event. */
export function learn(facts: RunFacts, event: MissionEvent): RunFacts {
  const { body } = event;
  if (body.kind === 'mission.ended') return { ...facts, end: body.end };
  if (body.kind === 'mission.retried') return { ...facts, end: undefined };
  if (body.kind !== 'turn.event') return facts;
  if (body.body.kind === 'attempt.started') return { ...facts, isolation: body.body.isolation };
  if (body.body.kind === 'collected') return { ...facts, excluded: body.body.tree.excluded };
  return facts;
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
    excluded: [...facts.excluded],
    leftOut: delivery?.leftOut ?? [],
    pushed: back.pushed,
    pushDetail: back.pushDetail,
    exitCode: exitCode === 0 && failed ? 1 : exitCode,
    error: failure,
  };
}
