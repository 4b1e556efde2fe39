import type { Commitment, HealthReading, NodeRecord } from './node-record.ts';
import { type Claim, DRIVERS, type Driver, type HostReserve, type Sizings } from './size-demand.ts';

/** What is promised on a node. */
export interface Committed {
  readonly count: number;
  readonly memoryMib: number;
  /** Claims of the VMs that live, in MiB: the part of the claims that observed use can contain. */
  readonly liveMemoryMib: number;
  /** Claimed disk that is not yet missing from the free disk, in MiB. */
  readonly diskMib: number;
  /** What runs them, each once; every driver where one of them may be of any. */
  readonly drivers: readonly Driver[];
}

/**
 * Live VMs united by VM id with the turns placed but not yet booted: one in both sets counts once, at the larger of its claims. A size that
 * neither set knows is the default of the VM's own driver, whatever is asked for; where that is unknown too, the largest default.
 */
export function sumCommitments(live: readonly Commitment[], reserved: readonly Commitment[], sizings: Sizings): Committed {
  const byId = new Map<string, Known>();
  for (const item of live) join(byId, item, true);
  for (const item of reserved) join(byId, item, false);
  const all: Driver[] = [];
  let memoryMib = 0;
  let liveMemoryMib = 0;
  let diskMib = 0;
  for (const known of byId.values()) {
    const drivers = known.drivers.length === 0 ? DRIVERS : known.drivers;
    for (const driver of drivers) if (!all.includes(driver)) all.push(driver);
    const memory = known.memoryMib ?? largest(drivers, (driver) => sizings[driver].memoryPerVmMib + sizings[driver].overheadMib);
    const disk = known.diskMib ?? largest(drivers, (driver) => sizings[driver].diskPerVmMib);
    memoryMib += memory;
    if (known.lives) liveMemoryMib += memory;
    diskMib += Math.max(0, disk - known.diskUsedMib);
  }
  return { count: byId.size, memoryMib, liveMemoryMib, diskMib, drivers: all };
}

/** All that both sets know of one VM. */
interface Known {
  readonly lives: boolean;
  readonly drivers: Driver[];
  memoryMib: number | undefined;
  diskMib: number | undefined;
  diskUsedMib: number;
}

function join(byId: Map<string, Known>, item: Commitment, lives: boolean): void {
  const { vmId, driver, memoryMib, diskMib, diskUsedMib = 0 } = item;
  const known = byId.get(vmId);
  if (known === undefined) {
    byId.set(vmId, { lives, drivers: driver === undefined ? [] : [driver], memoryMib, diskMib, diskUsedMib });
    return;
  }
  if (driver !== undefined) known.drivers.push(driver);
  known.memoryMib = larger(known.memoryMib, memoryMib);
  known.diskMib = larger(known.diskMib, diskMib);
  known.diskUsedMib = Math.max(known.diskUsedMib, diskUsedMib);
}

function larger(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
}

function largest(drivers: readonly Driver[], sizeOf: (driver: Driver) => number): number {
  return Math.max(...drivers.map(sizeOf));
}

/**
 * The host's own memory in MiB, apart from what is committed: never below the floor, nor below what was observed on top of the claims of
 * live VMs. A turn that has not booted cannot be part of what was observed, so its claim is not taken off.
 */
export function baselineOf(observedMib: number, committed: Committed, rememberedMib: number | undefined, reserve: HostReserve): number {
  if (committed.count === 0) return Math.max(observedMib, reserve.baselineFloorMib);
  return Math.max(observedMib - committed.liveMemoryMib, rememberedMib ?? 0, reserve.baselineFloorMib);
}

/** A node's memory and disk as placement charges them, in MiB. */
export interface Charge {
  readonly totalMib: number;
  /** The worse of observed and committed use. */
  readonly usedMib: number;
  readonly baselineMib: number;
  /** What the next turns may take; never negative. */
  readonly memoryLeftMib: number;
  /** Undefined where the node could not say how much disk is free. */
  readonly diskLeftMib: number | undefined;
  readonly diskFreeMib: number | undefined;
}

/** Charges a node for the worse of observed and committed use, and keeps `reserve` free beside it. */
export function chargeNode(health: HealthReading, committed: Committed, rememberedMib: number | undefined, reserve: HostReserve): Charge {
  const baselineMib = baselineOf(health.memoryUsedMib, committed, rememberedMib, reserve);
  const usedMib = Math.max(health.memoryUsedMib, committed.memoryMib + baselineMib);
  const diskFreeMib = health.diskFreeMib;
  return {
    totalMib: health.memoryTotalMib,
    usedMib,
    baselineMib,
    memoryLeftMib: Math.max(0, health.memoryTotalMib - usedMib - reserve.hostReserveMib),
    diskLeftMib: diskFreeMib === undefined ? undefined : Math.max(0, diskFreeMib - committed.diskMib - reserve.diskReserveMib),
    diskFreeMib,
  };
}

/** Slots of one claim's size in what is left. */
export function slotsOf(charge: Charge, claim: Claim): { readonly memory: number; readonly disk: number } {
  return { memory: Math.floor(charge.memoryLeftMib / claim.memoryMib), disk: Math.floor((charge.diskLeftMib ?? 0) / claim.diskMib) };
}

/** True where a claim exceeds even the empty node: its memory less reserve and idle footprint, or its whole disk less the reserve. */
export function neverFits(health: HealthReading, rememberedMib: number | undefined, claim: Claim, reserve: HostReserve): boolean {
  const idleMib = Math.max(rememberedMib ?? 0, reserve.baselineFloorMib);
  if (claim.memoryMib > health.memoryTotalMib - reserve.hostReserveMib - idleMib) return true;
  return health.diskTotalMib !== undefined && claim.diskMib > health.diskTotalMib - reserve.diskReserveMib;
}

/** What decides whether an idle reading is remembered. */
export interface BaselineFacts {
  readonly node: Pick<NodeRecord, 'health' | 'live' | 'reserved' | 'rememberedBaselineMib'>;
  /** When the last VM ended, on the clock of `nowMs`; absent where none ever ran. */
  readonly lastVmEndedAtMs?: number;
  readonly nowMs: number;
  /** Longest age of the reading, in ms. */
  readonly maxAgeMs: number;
  /** How long after the last VM's end the reading must have been taken, in ms. */
  readonly settleMs: number;
}

/** The idle footprint to remember, in MiB, or undefined where nothing is to be written. */
export function rememberBaseline(facts: BaselineFacts): number | undefined {
  const { health, live, reserved, rememberedBaselineMib } = facts.node;
  if (health === undefined || !(health.memoryTotalMib > 0)) return undefined;
  const age = facts.nowMs - health.atMs;
  if (age < 0 || age > facts.maxAgeMs) return undefined;
  if (live.status === 'unknown' || live.vms.length > 0 || reserved.length > 0) return undefined;
  if (facts.lastVmEndedAtMs !== undefined && health.atMs < facts.lastVmEndedAtMs + facts.settleMs) return undefined;
  return health.memoryUsedMib === rememberedBaselineMib ? undefined : health.memoryUsedMib;
}
