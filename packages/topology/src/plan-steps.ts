import { TopologyError } from './reasons.ts';
import { orderNodes, type Topology } from './validate-topology.ts';

/** One turn of a run, at its fixed place. */
export interface Step {
  /** From 0; part of the VM's id, so it never depends on what has run already. */
  readonly step: number;
  readonly nodeId: string;
  readonly role: string;
  readonly backend?: string;
  readonly model?: string;
  readonly seat?: string;
  /** Nodes whose closing reports this turn reads, in the order they ran. */
  readonly reads: readonly string[];
}

/** All turns in the order they run. Steps of one run are strictly sequential: two VMs never write one tree at once. Throws `topology_invalid` on a cycle. */
export function planSteps(topology: Topology): readonly Step[] {
  const order = orderNodes(topology);
  if (order === undefined) throw new TopologyError('topology_invalid', 'the topology has a cycle');
  return order.map(({ id, role, ...names }, step) => ({
    step,
    nodeId: id,
    role,
    ...names,
    reads: order.filter((node) => topology.edges.some((edge) => edge.from === node.id && edge.to === id)).map((node) => node.id),
  }));
}

/** The backends that a graph needs on its one node besides the mission's own: sorted, without duplicates. */
export function requiredBackends(topology: Topology): readonly string[] {
  return [...new Set(topology.nodes.flatMap((node) => (node.backend === undefined ? [] : [node.backend])))].sort();
}
