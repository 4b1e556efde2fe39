import * as limits from './limits.ts';
import { PlacementError } from './reasons.ts';

/** What runs a turn on a node, weakest isolation first. */
export const DRIVERS = ['process', 'qemu', 'firecracker'] as const;
/** One member of {@link DRIVERS}. */
export type Driver = (typeof DRIVERS)[number];

/** What one turn asks of a node; absent parts take the driver's default. */
export interface Demand {
  /** Memory of the guest in MiB, without the VMM's own. */
  readonly memoryMib?: number;
  /** Disk in MiB. */
  readonly diskMib?: number;
}

/** What one VM or sandbox takes from a node, the VMM's own memory included. Stored with the reservation. */
export interface Claim {
  readonly memoryMib: number;
  readonly diskMib: number;
}

/** The sizes of one driver. */
export interface Sizing {
  readonly memoryPerVmMib: number;
  readonly diskPerVmMib: number;
  /** Memory of the VMM beside its guest, in MiB. */
  readonly overheadMib: number;
  readonly hostReserveMib: number;
  readonly baselineFloorMib: number;
  readonly diskReserveMib: number;
}

/** Sizes of the drivers that boot a VM. */
export const VM_SIZING: Sizing = {
  memoryPerVmMib: limits.MEM_PER_VM_MIB,
  diskPerVmMib: limits.DISK_PER_VM_MIB,
  overheadMib: limits.VM_OVERHEAD_MIB,
  hostReserveMib: limits.HOST_RESERVE_MIB,
  baselineFloorMib: limits.HOST_BASELINE_FLOOR_MIB,
  diskReserveMib: limits.DISK_RESERVE_MIB,
};

/** Sizes of the process driver: a laptop of 4 GiB runs one turn. */
export const PROCESS_SIZING: Sizing = {
  memoryPerVmMib: limits.MEM_PER_PROCESS_MIB,
  diskPerVmMib: limits.DISK_PER_PROCESS_MIB,
  overheadMib: 0,
  hostReserveMib: limits.PROCESS_RESERVE_MIB,
  baselineFloorMib: limits.PROCESS_BASELINE_FLOOR_MIB,
  diskReserveMib: limits.PROCESS_DISK_RESERVE_MIB,
};

/** Sizes of every driver; a caller may pass its own. */
export type Sizings = Readonly<Record<Driver, Sizing>>;
/** The documented defaults. */
export const DEFAULT_SIZINGS: Sizings = { process: PROCESS_SIZING, qemu: VM_SIZING, firecracker: VM_SIZING };

/** True where `driver` isolates at least as well as `floor`. */
export function meetsFloor(driver: Driver, floor: Driver): boolean {
  return DRIVERS.indexOf(driver) >= DRIVERS.indexOf(floor);
}

/** What a demand takes from a node under one driver's sizes. Throws `demand_invalid` unless every given part is a whole number of MiB above 0. */
export function sizeDemand(demand: Demand, sizing: Sizing): Claim {
  const memory = demand.memoryMib ?? sizing.memoryPerVmMib;
  const diskMib = demand.diskMib ?? sizing.diskPerVmMib;
  for (const size of [memory, diskMib]) {
    if (!Number.isSafeInteger(size) || size <= 0)
      throw new PlacementError('demand_invalid', `a demand of ${size} MiB is no whole number above 0`);
  }
  return { memoryMib: memory + sizing.overheadMib, diskMib };
}
