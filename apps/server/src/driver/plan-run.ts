import { CodedError } from '@firecrew/base';
import type { RunPlanner } from '@firecrew/mission';
import { applyTurnResult, type Execution, nextTurns, parseCheckpoint, soloTopology, startExecution } from '@firecrew/topology';

/** Runs a phase by its topology; without a roster that is one turn. */
export const topologyPlanner: RunPlanner = {
  start: () => {
    const execution = startExecution(soloTopology());
    return { checkpoint: execution, turns: wanted(execution) };
  },
  advance: (checkpoint, turn) => {
    const read = parseCheckpoint(checkpoint);
    if (read.verdict !== 'valid')
      throw new CodedError('checkpoint_unreadable', `the checkpoint of the run cannot be read: ${read.message}`);
    const step = { step: turn.step, nodeId: turn.graphNode, result: 'succeeded', outcome: 'completed', report: '' } as const;
    const applied = applyTurnResult(read.execution, step);
    if (applied.verdict === 'refused')
      throw new CodedError('checkpoint_unreadable', `step ${turn.step} cannot be recorded: ${applied.reason}`);
    return { checkpoint: applied.execution, turns: wanted(applied.execution), done: applied.execution.status === 'completed' };
  },
};

function wanted(execution: Execution) {
  return nextTurns(execution).map((turn) => ({ step: turn.step, graphNode: turn.nodeId }));
}
