import type { MissionAggregate, RunPlanner, StepContext } from '../src/index.ts';

/** A chain of `length` turns, one after the other. */
export function solo(length = 1): RunPlanner {
  return {
    start: () => ({ checkpoint: 0, turns: [{ step: 0, graphNode: 'n0' }] }),
    advance: (_checkpoint, turn) => {
      const step = turn.step + 1;
      return step >= length
        ? { checkpoint: step, turns: [], done: true }
        : { checkpoint: step, turns: [{ step, graphNode: `n${step}` }], done: false };
    },
  };
}

export function contextWithIds(planner: RunPlanner = solo()): StepContext {
  let count = 0;
  return {
    planner,
    newId: (kind) => {
      count += 1;
      return `${kind}-${count}`;
    },
  };
}

export function draftMission(phases: number): MissionAggregate {
  return {
    id: 'm',
    state: 'draft',
    cancelRequested: false,
    turns: [],
    phases: Array.from({ length: phases }, (_, position) => ({
      id: `p${position}`,
      position,
      kind: 'coding',
      state: 'pending',
      iteration: 0,
      run: null,
      outcome: null,
      detail: '',
      delivery: 'none',
      deliveryFailed: false,
      result: null,
    })),
  };
}
