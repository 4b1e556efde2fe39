import type { Topology, TopologyEdge, TopologyNode } from './validate-topology.ts';

/** One turn of a node; `round` counts from 1. */
export interface TurnPlace {
  readonly nodeId: string;
  readonly round: number;
}

/** A turn with those it waits for. */
export interface UnrolledTurn extends TurnPlace {
  readonly node: TopologyNode;
  readonly waitsFor: readonly TurnPlace[];
}

/**
 * Writes out the rounds of a graph as levels: the turns of one level wait for turns of earlier levels alone and stand in the order of
 * their nodes. Undefined where turns wait for each other.
 */
export function unrollGraph(topology: Topology): ReadonlyArray<readonly UnrolledTurn[]> | undefined {
  const turnsOf = new Map(topology.nodes.map((node) => [node.id, node.turns ?? 1]));
  let waiting = topology.nodes.flatMap((node) =>
    Array.from({ length: node.turns ?? 1 }, (_, at): UnrolledTurn => turnOf(topology, turnsOf, node, at + 1)),
  );
  const done = new Set<string>();
  const levels: UnrolledTurn[][] = [];
  while (waiting.length > 0) {
    const ready = waiting.filter((turn) => turn.waitsFor.every((place) => done.has(keyOf(place))));
    if (ready.length === 0) return undefined;
    for (const turn of ready) done.add(keyOf(turn));
    waiting = waiting.filter((turn) => !ready.includes(turn));
    levels.push(ready);
  }
  return levels;
}

/** A key of a turn in a map. */
export function keyOf(place: TurnPlace): string {
  return `${place.nodeId}#${place.round}`;
}

function turnOf(topology: Topology, turnsOf: ReadonlyMap<string, number>, node: TopologyNode, round: number): UnrolledTurn {
  const own = round > 1 ? [{ nodeId: node.id, round: round - 1 }] : [];
  const others = topology.edges.flatMap((edge) => (edge.to === node.id ? waitedFor(edge, turnsOf.get(edge.from) ?? 1, round) : []));
  const places = new Map([...own, ...others].map((place) => [keyOf(place), place]));
  return { nodeId: node.id, round, node, waitsFor: [...places.values()] };
}

function waitedFor(edge: TopologyEdge, turns: number, round: number): TurnPlace[] {
  if (edge.when === 'at_end') return [{ nodeId: edge.from, round: turns }];
  if (edge.when === undefined) return [{ nodeId: edge.from, round: Math.min(round, turns) }];
  return round === 1 ? [] : [{ nodeId: edge.from, round: Math.min(round - 1, turns) }];
}
