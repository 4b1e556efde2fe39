import { findKind } from './catalogue.ts';
import type { StepRecord } from './execution.ts';
import { planWaves, type Step } from './plan-steps.ts';
import type { Topology } from './validate-topology.ts';

/** Where a run stands, as its graph and its records say. */
export interface Standing {
  /** The group that is not over yet, without the turns that are left out; empty when all are over. */
  readonly wave: readonly Step[];
  /** Those of it without a record. */
  readonly due: readonly Step[];
  /** Recorded steps of the groups before it. */
  readonly past: readonly number[];
  /** Steps that are left out, since everybody was satisfied before their round. */
  readonly leftOut: readonly number[];
  readonly failed: boolean;
}

/** Goes through the groups of a graph as far as its records reach. Whether a round is left out is decided between groups alone. */
export function walkWaves(topology: Topology, maxParallel: number, records: ReadonlyMap<number, StepRecord>): Standing {
  const past: number[] = [];
  const leftOut: number[] = [];
  for (const all of planWaves(topology, maxParallel)) {
    const settled = settledRound(topology, past, records);
    const wave = all.filter((step) => step.round <= settled);
    leftOut.push(...all.filter((step) => step.round > settled).map((step) => step.step));
    const due = wave.filter((step) => !records.has(step.step));
    const failed = wave.some((step) => records.get(step.step)?.result === 'failed');
    if (due.length > 0 || failed) return { wave, due, past, leftOut, failed };
    past.push(...wave.map((step) => step.step));
  }
  return { wave: [], due: [], past, leftOut, failed: false };
}

/** The first round in which all who could ask for another were satisfied; infinite where none is. */
function settledRound(topology: Topology, past: readonly number[], records: ReadonlyMap<number, StepRecord>): number {
  if (findKind(topology.kind)?.settles !== true) return Number.POSITIVE_INFINITY;
  const voters = new Set(topology.edges.flatMap((edge) => (edge.when === 'next_round' ? [edge.from] : [])));
  const turns = new Map(topology.nodes.map((node) => [node.id, node.turns ?? 1]));
  const satisfied = new Map<string, boolean>();
  const seen = new Map<string, number>();
  for (const step of past) {
    const record = records.get(step);
    if (record === undefined) continue;
    const round = (seen.get(record.nodeId) ?? 0) + 1;
    seen.set(record.nodeId, round);
    satisfied.set(`${record.nodeId}#${round}`, record.satisfied === true);
  }
  const last = Math.max(0, ...[...voters].map((id) => turns.get(id) ?? 1));
  for (let round = 1; round <= last; round += 1) {
    if ([...voters].every((id) => satisfied.get(`${id}#${round}`) === true)) return round;
  }
  return Number.POSITIVE_INFINITY;
}
