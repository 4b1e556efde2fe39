import { type Charge, type Committed, chargeNode, neverFits, slotsOf, sumCommitments } from './charge-node.ts';
import { MAX_HEALTH_AGE_MS, MAX_METRICS_AGE_MS } from './limits.ts';
import type { NodeRecord } from './node-record.ts';
import type { UnfitCause } from './reasons.ts';
import { reserveHost } from './reserve-host.ts';
import { type Claim, type Demand, DRIVERS, type Driver, meetsFloor, type Sizings, sizeDemand } from './size-demand.ts';

/** What a turn (or all turns of one composed run, which share a node) needs. */
export interface PlacementNeed {
  readonly demand: Demand;
  /** Keys of the backends whose image the node must hold, all of them; empty where no image is used. */
  readonly backends: readonly string[];
  /** The weakest driver the operator allows. */
  readonly driverFloor: Driver;
  /** Whether guests need a model route for each of the backends. */
  readonly modelRoute?: boolean;
  /** A driver asked for; it never goes below the floor. */
  readonly driver?: Driver;
}

/** One node that can take the turn now. */
export interface FitNode {
  readonly fit: true;
  readonly id: string;
  readonly name: string;
  readonly driver: Driver;
  readonly claim: Claim;
  readonly slots: number;
  readonly committed: number;
  readonly usedMib: number;
  readonly totalMib: number;
  readonly diskFreeMib: number | undefined;
  /** 100 less the busier of cpu and memory, in percent; 0 where no reading is fresh. */
  readonly headroomPercent: number;
}

/** One node that cannot, and why. */
export type UnfitNode = UnfitCause & {
  readonly fit: false;
  readonly id: string;
  readonly name: string;
  /** True where the node could run such a turn at another time. */
  readonly capable: boolean;
  /** True where the node lacks nothing for such a turn but a model route. */
  readonly lacksRoute: boolean;
  /** True where it is getting every image that it lacks for such a turn. */
  readonly awaitsImage: boolean;
  /** The reason with its numbers, one line. */
  readonly detail: string;
};

/** A node's verdict for one need. */
export type NodeVerdict = FitNode | UnfitNode;

/** Judges one node: capability, draining, health, disk, memory, in this order, so that the reason names the true obstacle. */
export function judgeNode(node: NodeRecord, need: PlacementNeed, sizings: Sizings, nowMs: number): NodeVerdict {
  const driver = driverOf(node, need);
  const missing = missingOf(node, need);
  const lacksRoute = missing?.kind === 'route';
  const { id, name } = node;
  const awaitsImage = missing !== undefined && !lacksRoute && isComing(node, need);
  const unfit: Unfit = (cause, detail, capable = true) => ({ fit: false, id, name, capable, lacksRoute, awaitsImage, detail, ...cause });
  if (node.draining) return unfit({ reason: 'draining' }, 'draining', missing === undefined);
  if (driver === undefined || missing !== undefined) return unfit({ reason: 'not_capable' }, missing?.detail ?? 'no driver', false);
  if (!node.connected) return unfit({ reason: 'not_connected' }, 'not connected');
  const health = node.health;
  if (health === undefined) return unfit({ reason: 'no_recent_health' }, 'no health reading');
  const ageMs = nowMs - health.atMs;
  const unread = (detail: string): UnfitNode => unfit({ reason: 'no_recent_health', ageMs }, detail);
  if (!(ageMs >= 0 && ageMs <= MAX_HEALTH_AGE_MS)) return unread(`no recent health (last ${Math.round(ageMs / 1000)} s ago)`);
  if (!(health.memoryTotalMib > 0) || !(health.memoryUsedMib >= 0)) return unread('the reading has no memory total');
  const claim = sizeDemand(need.demand, sizings[driver]);
  // What runs there now will end; what the node has stays.
  if (neverFits(health, node.rememberedBaselineMib, claim, reserveHost(node.drivers, [], sizings))) {
    return unfit(
      { reason: 'never_fits', ...claim, totalMib: health.memoryTotalMib },
      `asks ${claim.memoryMib} MiB memory and ${claim.diskMib} MiB disk, more than the empty node has (${health.memoryTotalMib} MiB)`,
    );
  }
  if (node.live.status === 'unknown') {
    const { error } = node.live;
    return unfit({ reason: 'capacity_unknown', error }, `capacity unknown (${error})`);
  }
  const committed = sumCommitments(node.live.vms, node.reserved, sizings);
  const reserve = reserveHost(node.drivers, committed.drivers, sizings);
  const charge = chargeNode(health, committed, node.rememberedBaselineMib, reserve);
  if (charge.diskLeftMib === undefined) return unread('free disk unknown');
  return weigh(node, driver, claim, committed, charge, headroomOf(node, charge, nowMs), unfit);
}

type Unfit = (cause: UnfitCause, detail: string, capable?: boolean) => UnfitNode;

function weigh(
  node: NodeRecord,
  driver: Driver,
  claim: Claim,
  committed: Committed,
  charge: Charge,
  headroomPercent: number,
  unfit: Unfit,
): NodeVerdict {
  const slots = slotsOf(charge, claim);
  if (slots.disk < 1) {
    const freeMib = charge.diskFreeMib ?? 0;
    const promised = committed.diskMib > 0 ? `, ${gib(committed.diskMib)} GiB promised` : '';
    return unfit({ reason: 'no_disk', freeMib, promisedMib: committed.diskMib }, `no disk (${gib(freeMib)} GiB free${promised})`);
  }
  if (slots.memory < 1) {
    const { usedMib, totalMib } = charge;
    return unfit(
      { reason: 'at_capacity', committedMib: committed.memoryMib, usedMib, totalMib },
      `at capacity (${committed.count} committed, ${usedMib} of ${totalMib} MiB used)`,
    );
  }
  return {
    fit: true,
    id: node.id,
    name: node.name,
    driver,
    claim,
    slots: Math.min(slots.memory, slots.disk),
    committed: committed.count,
    usedMib: charge.usedMib,
    totalMib: charge.totalMib,
    diskFreeMib: charge.diskFreeMib,
    headroomPercent,
  };
}

/** Whether under one allowed driver every image is there or on its way. */
function isComing(node: NodeRecord, need: PlacementNeed): boolean {
  return allowedDrivers(need).some((driver) => {
    const coming = node.comingImages?.[driver] ?? [];
    return coming.length > 0 && missingImages(node, need, driver).every((backend) => coming.includes(backend));
  });
}

function allowedDrivers(need: PlacementNeed): readonly Driver[] {
  return DRIVERS.filter((driver) => meetsFloor(driver, need.driverFloor) && (need.driver === undefined || need.driver === driver));
}

/** The strongest driver of the node that is allowed, asked for and has every image; where none has, the strongest without. */
function driverOf(node: NodeRecord, need: PlacementNeed): Driver | undefined {
  const offered = allowedDrivers(need).filter((driver) => node.drivers.includes(driver));
  return offered.findLast((driver) => missingImages(node, need, driver).length === 0) ?? offered.at(-1);
}

function missingImages(node: NodeRecord, need: PlacementNeed, driver: Driver): string[] {
  const held = node.images[driver] ?? [];
  return need.backends.filter((backend) => !held.includes(backend));
}

/** What a node lacks for a need, whoever else is there; `route` where a model route is all. */
function missingOf(
  node: NodeRecord,
  need: PlacementNeed,
): { readonly kind: 'driver' | 'image' | 'route'; readonly detail: string } | undefined {
  const driver = driverOf(node, need);
  if (driver === undefined) return { kind: 'driver', detail: `no driver ${need.driver ?? `${need.driverFloor} or stronger`}` };
  const images = missingImages(node, need, driver);
  if (images.length > 0) return { kind: 'image', detail: `no image for ${images.join(', ')}` };
  const routes = node.modelRoutes?.[driver] ?? [];
  const unrouted = need.modelRoute === true ? need.backends.filter((backend) => !routes.includes(backend)) : [];
  return unrouted.length === 0
    ? undefined
    : { kind: 'route', detail: `no model route for ${unrouted.join(', ')} under the driver ${driver}` };
}

/** A source that is stale is dropped before the two are merged, so that an old cpu figure wins no tie. */
function headroomOf(node: NodeRecord, charge: Charge, nowMs: number): number {
  const memory = (charge.usedMib / charge.totalMib) * 100;
  const metrics = node.metrics;
  const age = metrics === undefined ? -1 : nowMs - metrics.atMs;
  const busy =
    metrics !== undefined && age >= 0 && age <= MAX_METRICS_AGE_MS ? Math.max(metrics.cpuPercent, metrics.memoryPercent, memory) : memory;
  return Math.max(0, Math.round((100 - busy) * 10) / 10);
}

function gib(mib: number): number {
  return Math.round((mib / 1024) * 10) / 10;
}
