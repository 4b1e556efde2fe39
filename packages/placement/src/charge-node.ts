import type { Commitment, HealthReading, NodeRecord } from './node-record.ts';
import type { Claim, Sizing } from './size-demand.ts';

/** What is promised on a node. */
export interface Committed {
  readonly count: number;
  readonly memoryMib: number;
  /** Claims of the VMs that live, in MiB: the part of the claims that observed use can contain. */
  readonly liveMemoryMib: number;
  /** Claimed disk that is not yet missing from the free disk, in MiB. */
  readonly diskMib: number;
}

/** Live VMs united by VM id with the turns placed but not yet booted: one in both sets counts once, at the larger of its claims. */
export function sumCommitments(live: readonly Commitment[], reserved: readonly Commitment[], sizing: Sizing): Committed {
  const byId = new Map<string, Required<Omit<Commitment, 'vmId'>>>();
  for (const item of [...live, ...reserved]) {
    const known = byId.get(item.vmId);
    const next = {
      memoryMib: item.memoryMib ?? sizing.memoryPerVmMib + sizing.overheadMib,
      diskMib: item.diskMib ?? sizing.diskPerVmMib,
      diskUsedMib: item.diskUsedMib ?? 0,
    };
    byId.set(item.vmId, {
      memoryMib: Math.max(next.memoryMib, known?.memoryMib ?? 0),
      diskMib: Math.max(next.diskMib, known?.diskMib ?? 0),
      diskUsedMib: Math.max(next.diskUsedMib, known?.diskUsedMib ?? 0),
    });
  }
  const livingIds = new Set(live.map((vm) => vm.vmId));
  let memoryMib = 0;
  let liveMemoryMib = 0;
  let diskMib = 0;
  for (const [vmId, claim] of byId) {
    memoryMib += claim.memoryMib;
    if (livingIds.has(vmId)) liveMemoryMib += claim.memoryMib;
    diskMib += Math.max(0, claim.diskMib - claim.diskUsedMib);
  }
  return { count: byId.size, memoryMib, liveMemoryMib, diskMib };
}

/**
 * The host's own memory in MiB, apart from what is committed: never below the floor, nor below what was observed on top of the claims of
 * live VMs. A turn that has not booted cannot be part of what was observed, so its claim is not taken off.
 */
export function baselineOf(observedMib: number, committed: Committed, rememberedMib: number | undefined, sizing: Sizing): number {
  if (committed.count === 0) return Math.max(observedMib, sizing.baselineFloorMib);
  return Math.max(observedMib - committed.liveMemoryMib, rememberedMib ?? 0, sizing.baselineFloorMib);
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

/** Charges a node for the worse of observed and committed use. */
export function chargeNode(health: HealthReading, committed: Committed, rememberedMib: number | undefined, sizing: Sizing): Charge {
  const baselineMib = baselineOf(health.memoryUsedMib, committed, rememberedMib, sizing);
  const usedMib = Math.max(health.memoryUsedMib, committed.memoryMib + baselineMib);
  const diskFreeMib = health.diskFreeMib;
  return {
    totalMib: health.memoryTotalMib,
    usedMib,
    baselineMib,
    memoryLeftMib: Math.max(0, health.memoryTotalMib - usedMib - sizing.hostReserveMib),
    diskLeftMib: diskFreeMib === undefined ? undefined : Math.max(0, diskFreeMib - committed.diskMib - sizing.diskReserveMib),
    diskFreeMib,
  };
}

/** Slots of one claim's size in what is left. */
export function slotsOf(charge: Charge, claim: Claim): { readonly memory: number; readonly disk: number } {
  return { memory: Math.floor(charge.memoryLeftMib / claim.memoryMib), disk: Math.floor((charge.diskLeftMib ?? 0) / claim.diskMib) };
}

/** True where a claim exceeds even the empty node: its memory less reserve and idle footprint, or its whole disk less the reserve. */
export function neverFits(health: HealthReading, rememberedMib: number | undefined, claim: Claim, sizing: Sizing): boolean {
  const idleMib = Math.max(rememberedMib ?? 0, sizing.baselineFloorMib);
  if (claim.memoryMib > health.memoryTotalMib - sizing.hostReserveMib - idleMib) return true;
  return health.diskTotalMib !== undefined && claim.diskMib > health.diskTotalMib - sizing.diskReserveMib;
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
