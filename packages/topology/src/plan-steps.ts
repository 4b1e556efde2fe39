import { MAX_PARALLEL } from './limits.ts';
import { TopologyError } from './reasons.ts';
import { keyOf, unrollGraph } from './unroll-graph.ts';
import type { Topology } from './validate-topology.ts';

/** One turn of a run, at its fixed place. */
export interface Step {
  /** From 0; part of the VM's id, so it never depends on what has run already. */
  readonly step: number;
  readonly nodeId: string;
  readonly role: string;
  readonly backend?: string;
  readonly model?: string;
  readonly seat?: string;
  /** The how-manieth turn of its node this is, from 1. */
  readonly round: number;
  /** Steps that must be over first and whose closing reports this turn reads, its own node's last one included; ascending. */
  readonly reads: readonly number[];
}

/** All turns in the order they run one after the other. Throws `topology_invalid` on a cycle. */
export function planSteps(topology: Topology): readonly Step[] {
  return planLevels(topology).flat();
}

/**
 * The turns in groups that run at the same time, at most `maxParallel` (1 to {@link MAX_PARALLEL}) each; a group starts when the one before
 * it is over, so what a turn sees does not depend on who was faster. With 1 every turn is a group of its own. The numbers of the steps are
 * the same for every `maxParallel`. Throws `topology_invalid` on a cycle, `parallel_invalid` for another `maxParallel`.
 */
export function planWaves(topology: Topology, maxParallel = 1): ReadonlyArray<readonly Step[]> {
  if (!Number.isInteger(maxParallel) || maxParallel < 1 || maxParallel > MAX_PARALLEL)
    throw new TopologyError('parallel_invalid', `${maxParallel} turns at once are not between 1 and ${MAX_PARALLEL}`);
  return planLevels(topology).flatMap((level) =>
    Array.from({ length: Math.ceil(level.length / maxParallel) }, (_, at) => level.slice(at * maxParallel, (at + 1) * maxParallel)),
  );
}

/** The backends that a graph needs on its one node besides the mission's own: sorted, without duplicates. */
export function requiredBackends(topology: Topology): readonly string[] {
  return [...new Set(topology.nodes.flatMap((node) => (node.backend === undefined ? [] : [node.backend])))].sort();
}

function planLevels(topology: Topology): ReadonlyArray<readonly Step[]> {
  const levels = unrollGraph(topology);
  if (levels === undefined) throw new TopologyError('topology_invalid', 'the topology has a cycle');
  const numbers = new Map(levels.flat().map((turn, step) => [keyOf(turn), step]));
  return levels.map((level) =>
    level.map((turn) => {
      const { id, role, turns: _turns, ...names } = turn.node;
      const reads = turn.waitsFor.flatMap((place) => numbers.get(keyOf(place)) ?? []).sort((a, b) => a - b);
      return { step: numbers.get(keyOf(turn)) ?? 0, nodeId: id, role, ...names, round: turn.round, reads };
    }),
  );
}
