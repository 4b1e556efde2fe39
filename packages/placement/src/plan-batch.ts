import { type Placement, placeOn, refusePlacement } from './choose-placement.ts';
import { type BudgetCap, holdGrant } from './grant-budget.ts';
import { judgeNode, type PlacementNeed } from './judge-node.ts';
import { judgeSeat, type SeatRoom } from './judge-seat.ts';
import type { NodeRecord } from './node-record.ts';
import { type FitRanking, rankFit } from './rank-fit.ts';
import { DEFAULT_SIZINGS, type Sizings } from './size-demand.ts';

/** One turn of a batch. */
export interface BatchTurn extends PlacementNeed {
  /** The id of the VM to be; a node that already holds it counts it once. */
  readonly vmId: string;
  readonly preferred?: string;
  /** Seat that the turn works under; it takes one of its leases. */
  readonly seatId?: string;
}

/** Many turns to place at once on one view of the fleet. */
export interface BatchRequest {
  readonly turns: readonly BatchTurn[];
  readonly nodes: readonly NodeRecord[];
  readonly nowMs: number;
  readonly sizings?: Sizings;
  /** Seats that are linked, with what is held of them; default none. */
  readonly seats?: readonly SeatRoom[];
}

/** One turn's answer. */
export interface BatchPlacement {
  readonly vmId: string;
  readonly placement: Placement;
  /** What a chosen turn is given of its seat's budget; absent where that has none. */
  readonly grant?: BudgetCap;
}

/**
 * Places turns in their order, each on what the ones before it left. Each node is judged again only after it took a turn,
 * so a batch costs nodes + turns judgements for each distinct need, and a turn the logarithm of the nodes. A turn of a seat
 * takes one of its leases; where none is left it waits, and holds back nobody.
 */
export function planBatch(request: BatchRequest): readonly BatchPlacement[] {
  const sizings = request.sizings ?? DEFAULT_SIZINGS;
  const records = [...request.nodes];
  const indexOf = new Map(records.map((node, index) => [node.id, index]));
  const views = new Map<string, View>();
  const seats = new Map((request.seats ?? []).map((seat) => [seat.id, seat]));
  return request.turns.map((turn) => {
    const seat = turn.seatId === undefined ? undefined : seats.get(turn.seatId);
    const judged = turn.seatId === undefined ? undefined : judgeSeat(turn.seatId, seat);
    if (judged !== undefined && judged.verdict !== 'free') return { vmId: turn.vmId, placement: judged };
    const grant = judged?.grant;
    const view = viewOf(views, turn, () => rankFit(records.map((node) => judgeNode(node, turn, sizings, request.nowMs))));
    const placement = placeTurn(view, turn, indexOf);
    const index = placement.verdict === 'chosen' ? indexOf.get(placement.nodeId) : undefined;
    const node = index === undefined ? undefined : records[index];
    if (placement.verdict === 'chosen' && index !== undefined && node !== undefined) {
      const next = { ...node, reserved: [...node.reserved, { vmId: turn.vmId, driver: placement.driver, ...placement.claim }] };
      records[index] = next;
      if (seat !== undefined) seats.set(seat.id, heldBy(seat, grant));
      for (const each of views.values()) {
        each.ranking.replace(index, judgeNode(next, each.need, sizings, request.nowMs));
        each.refusal = undefined;
      }
    }
    return { vmId: turn.vmId, placement, ...(placement.verdict === 'chosen' && grant !== undefined ? { grant } : {}) };
  });
}

/** A seat with one more turn under it. */
function heldBy(seat: SeatRoom, grant: BudgetCap | undefined): SeatRoom {
  const budget = seat.budget === undefined || grant === undefined ? {} : { budget: holdGrant(seat.budget, grant) };
  return { ...seat, held: seat.held + 1, ...budget };
}

/** The fleet as turns of one need see it. */
interface View {
  readonly need: PlacementNeed;
  readonly ranking: FitRanking;
  /** What a turn of this need was told since the fleet last changed; the report of a large fleet is dear. */
  refusal: Placement | undefined;
}

function placeTurn(view: View, turn: BatchTurn, indexOf: ReadonlyMap<string, number>): Placement {
  const best = view.ranking.best();
  if (best === undefined) {
    view.refusal ??= refusePlacement(view.ranking.verdicts, view.need);
    return view.refusal;
  }
  const index = turn.preferred === undefined ? undefined : indexOf.get(turn.preferred);
  return placeOn(best, turn.preferred, index === undefined ? undefined : view.ranking.verdicts[index], []);
}

function viewOf(views: Map<string, View>, turn: BatchTurn, rank: () => FitRanking): View {
  const { demand, backends, driverFloor, driver, modelRoute } = turn;
  const key = JSON.stringify([
    demand.memoryMib ?? null,
    demand.diskMib ?? null,
    backends,
    driverFloor,
    driver ?? null,
    modelRoute === true,
  ]);
  const known = views.get(key);
  if (known !== undefined) return known;
  const view: View = { need: turn, ranking: rank(), refusal: undefined };
  views.set(key, view);
  return view;
}
