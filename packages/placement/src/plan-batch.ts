import { decidePlacement, type Placement } from './choose-placement.ts';
import { judgeNode, type NodeVerdict, type PlacementNeed } from './judge-node.ts';
import type { NodeRecord } from './node-record.ts';
import { DEFAULT_SIZINGS, type Sizings } from './size-demand.ts';

/** One turn of a batch. */
export interface BatchTurn extends PlacementNeed {
  /** The id of the VM to be; a node that already holds it counts it once. */
  readonly vmId: string;
  readonly preferred?: string;
}

/** Many turns to place at once on one view of the fleet. */
export interface BatchRequest {
  readonly turns: readonly BatchTurn[];
  readonly nodes: readonly NodeRecord[];
  readonly nowMs: number;
  readonly sizings?: Sizings;
}

/** One turn's answer. */
export interface BatchPlacement {
  readonly vmId: string;
  readonly placement: Placement;
}

/**
 * Places turns in their order, each on what the ones before it left. Each node is judged again only after it took a turn,
 * so a batch costs nodes + turns judgements for each distinct need.
 */
export function planBatch(request: BatchRequest): readonly BatchPlacement[] {
  const sizings = request.sizings ?? DEFAULT_SIZINGS;
  const records = [...request.nodes];
  const indexOf = new Map(records.map((node, index) => [node.id, index]));
  const views = new Map<string, View>();
  return request.turns.map((turn) => {
    const view = viewOf(views, turn, () => records.map((node) => judgeNode(node, turn, sizings, request.nowMs)));
    const placement = decidePlacement(view.verdicts, turn, 'report_refusals');
    const index = placement.verdict === 'chosen' ? indexOf.get(placement.nodeId) : undefined;
    const node = index === undefined ? undefined : records[index];
    if (placement.verdict === 'chosen' && index !== undefined && node !== undefined) {
      const next = { ...node, reserved: [...node.reserved, { vmId: turn.vmId, ...placement.claim }] };
      records[index] = next;
      for (const each of views.values()) each.verdicts[index] = judgeNode(next, each.need, sizings, request.nowMs);
    }
    return { vmId: turn.vmId, placement };
  });
}

/** The fleet as turns of one need see it. */
interface View {
  readonly need: PlacementNeed;
  readonly verdicts: NodeVerdict[];
}

function viewOf(views: Map<string, View>, turn: BatchTurn, judge: () => NodeVerdict[]): View {
  const { demand, backends, driverFloor, driver } = turn;
  const key = JSON.stringify([demand.memoryMib ?? null, demand.diskMib ?? null, backends, driverFloor, driver ?? null]);
  const known = views.get(key);
  if (known !== undefined) return known;
  const view = { need: turn, verdicts: judge() };
  views.set(key, view);
  return view;
}
