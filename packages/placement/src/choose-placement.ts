import { type FitNode, judgeNode, type NodeVerdict, type PlacementNeed, type UnfitNode } from './judge-node.ts';
import type { SeatBusy } from './judge-seat.ts';
import { LONGEST_WAIT_MS } from './limits.ts';
import type { NodeRecord } from './node-record.ts';
import { compareFit } from './rank-fit.ts';
import { type Claim, DEFAULT_SIZINGS, type Driver, type Sizings } from './size-demand.ts';

/** One question to the placer. */
export interface PlacementRequest extends PlacementNeed {
  readonly nodes: readonly NodeRecord[];
  /** Node of the previous phase; used when it still fits. */
  readonly preferred?: string;
  /** The receiver's clock that the readings are dated with, in ms. */
  readonly nowMs: number;
  /** Default {@link DEFAULT_SIZINGS}. */
  readonly sizings?: Sizings;
}

/** All nodes for one need: what the capacity endpoint returns and the placer uses. */
export interface Survey {
  readonly totalFreeSlots: number;
  /** Best first. */
  readonly ranked: readonly FitNode[];
  readonly unfit: readonly UnfitNode[];
}

/**
 * The placer's answer. `never_fits` and `no_capable_node` are permanent; the two of the fleet, the one of the seat, that of the model route and
 * that of the image queue the turn.
 */
export type Placement =
  | SeatBusy
  | {
      readonly verdict: 'chosen';
      readonly nodeId: string;
      readonly driver: Driver;
      readonly claim: Claim;
      readonly preference: Preference;
      readonly report: readonly string[];
    }
  | {
      readonly verdict: 'no_capable_node';
      readonly transient: false;
      readonly backends: readonly string[];
      readonly howToFix: string;
      readonly report: readonly string[];
    }
  | { readonly verdict: 'no_node_with_model_route'; readonly transient: true; readonly message: string; readonly report: readonly string[] }
  | { readonly verdict: 'image_on_its_way'; readonly transient: true; readonly message: string; readonly report: readonly string[] }
  | { readonly verdict: 'never_fits'; readonly transient: false; readonly message: string; readonly report: readonly string[] }
  | {
      readonly verdict: 'fleet_at_capacity';
      readonly transient: true;
      readonly full: number;
      readonly unreadable: number;
      readonly draining: number;
      readonly message: string;
      readonly report: readonly string[];
    }
  | {
      readonly verdict: 'fleet_unreadable';
      readonly transient: true;
      readonly unreadable: number;
      readonly message: string;
      readonly report: readonly string[];
    };

/** What became of the preferred node. */
export type Preference =
  | { readonly status: 'none' }
  | { readonly status: 'used' }
  | { readonly status: 'passed_over'; readonly detail: string };

/** Judges every node once and ranks those that fit: most free slots, then headroom, then node id. */
export function surveyNodes(request: Omit<PlacementRequest, 'preferred'>): Survey {
  const sizings = request.sizings ?? DEFAULT_SIZINGS;
  return rankVerdicts(request.nodes.map((node) => judgeNode(node, request, sizings, request.nowMs)));
}

/** Which node runs the turn, or precisely why none can. Reserve in the same transaction as this choice. */
export function choosePlacement(request: PlacementRequest): Placement {
  const sizings = request.sizings ?? DEFAULT_SIZINGS;
  const verdicts = request.nodes.map((node) => judgeNode(node, request, sizings, request.nowMs));
  const survey = rankVerdicts(verdicts);
  const [best] = survey.ranked;
  if (best === undefined) return refusePlacement(verdicts, request);
  const wanted = verdicts.findLast((verdict) => verdict.id === request.preferred);
  return placeOn(best, request.preferred, wanted, renderSurvey(survey));
}

function rankVerdicts(verdicts: readonly NodeVerdict[]): Survey {
  const ranked = verdicts.filter((verdict) => verdict.fit).sort(compareFit);
  const unfit = verdicts.filter((verdict) => !verdict.fit).sort((a, b) => compareText(a.name, b.name) || compareText(a.id, b.id));
  return { totalFreeSlots: ranked.reduce((sum, node) => sum + node.slots, 0), ranked, unfit };
}

/** Places a turn on the best node, or on the one that it asked for when that fits too. */
export function placeOn(
  best: FitNode,
  preferred: string | undefined,
  wanted: NodeVerdict | undefined,
  report: readonly string[],
): Placement {
  const chosen = wanted?.fit === true ? wanted : best;
  const preference = preferenceOf(preferred, wanted);
  return { verdict: 'chosen', nodeId: chosen.id, driver: chosen.driver, claim: chosen.claim, preference, report };
}

/** One line per node, by name: what it has left, or why it is left out. */
export function renderSurvey(survey: Survey): readonly string[] {
  const fit = survey.ranked.map(
    (node) =>
      `${node.name}: ${node.slots} free, ${node.committed} committed, ${node.usedMib} of ${node.totalMib} MiB used, headroom ${node.headroomPercent} %`,
  );
  return [...fit, ...survey.unfit.map((node) => `${node.name}: unfit, ${node.detail}`)];
}

function preferenceOf(preferred: string | undefined, wanted: NodeVerdict | undefined): Preference {
  if (preferred === undefined) return { status: 'none' };
  if (wanted === undefined) return { status: 'passed_over', detail: 'the node is not registered' };
  return wanted.fit ? { status: 'used' } : { status: 'passed_over', detail: `${wanted.name}: ${wanted.detail}` };
}

/** Says why no node of a fleet takes a turn of this need; none of the verdicts fits. */
export function refusePlacement(verdicts: readonly NodeVerdict[], request: PlacementNeed): Placement {
  const survey = rankVerdicts(verdicts);
  const { unfit } = survey;
  const report = renderSurvey(survey);
  const capable = unfit.filter((node) => node.capable);
  const unrouted = unfit.filter((node) => node.lacksRoute).length;
  if (capable.length === 0 && unrouted > 0) {
    const message = `The turn needs a model route, and no node has one for ${request.backends.join(', ')}: ${unrouted} ${nodes(unrouted)} could run it otherwise. Name the route in \`modelRoutes\` of a node; the turn waits for it.`;
    return { verdict: 'no_node_with_model_route', transient: true, message, report };
  }
  const awaiting = unfit.filter((node) => node.awaitsImage);
  if (capable.length === 0 && awaiting.length > 0) {
    const message = `No node can boot ${request.backends.join(', ')} yet: ${awaiting.map(({ name }) => name).join(', ')} ${awaiting.length === 1 ? 'is' : 'are'} getting what it boots from. The turn waits for it.`;
    return { verdict: 'image_on_its_way', transient: true, message, report };
  }
  if (capable.length === 0) {
    return { verdict: 'no_capable_node', transient: false, backends: request.backends, howToFix: howToFix(unfit, request), report };
  }
  if (capable.every((node) => node.reason === 'never_fits')) {
    return {
      verdict: 'never_fits',
      transient: false,
      message: 'The turn asks for more than any capable node has when it is empty; ask for less, or add a larger node.',
      report,
    };
  }
  const count = (...reasons: readonly string[]): number => capable.filter((node) => reasons.includes(node.reason)).length;
  const full = count('at_capacity', 'no_disk');
  const draining = count('draining');
  const unreadable = count('not_connected', 'no_recent_health', 'capacity_unknown');
  if (full + draining === 0) {
    const message = `${unreadable} capable ${nodes(unreadable)} could not be read, so nothing is known of the room there; this is not a full fleet. The turn waits until a node answers.`;
    return { verdict: 'fleet_unreadable', transient: true, unreadable, message, report };
  }
  const wait = Math.round(LONGEST_WAIT_MS / 60_000);
  const message = `No capable node has room now: ${full} at capacity, ${draining} draining, ${unreadable} could not be read. The turn is queued; one running turn ends after ${wait} min at the latest.`;
  return { verdict: 'fleet_at_capacity', transient: true, full, draining, unreadable, message, report };
}

function howToFix(unfit: readonly UnfitNode[], request: PlacementNeed): string {
  if (unfit.length === 0) return 'No node is registered: run `firecrew node join` on a host.';
  const driver = request.driver ?? `${request.driverFloor} or a stronger driver`;
  const images = request.backends.length === 0 ? '' : ` and ALL of these images: ${request.backends.join(', ')}`;
  return `One single node must offer ${driver}${images}. Run \`firecrew doctor\` on a node for the driver, and ensure the missing images there.`;
}

function nodes(count: number): string {
  return count === 1 ? 'node' : 'nodes';
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
