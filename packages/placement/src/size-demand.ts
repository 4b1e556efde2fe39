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
  /** vCPUs; nodes share theirs, so they decide no placement. */
  readonly vcpus?: number;
}

/** What one VM or sandbox takes from a node, the VMM's own memory included. Stored with the reservation. */
export interface Claim {
  readonly memoryMib: number;
  readonly diskMib: number;
}

/** What stays free of a host, in MiB. */
export interface HostReserve {
  readonly hostReserveMib: number;
  /** The least the host is believed to use by itself. */
  readonly baselineFloorMib: number;
  readonly diskReserveMib: number;
}

/** The sizes of one driver. */
export interface Sizing extends HostReserve {
  readonly memoryPerVmMib: number;
  readonly diskPerVmMib: number;
  readonly vcpusPerVm: number;
  /** Memory of the VMM beside its guest, in MiB. */
  readonly overheadMib: number;
}

/** Sizes of the drivers that boot a VM. */
export const VM_SIZING: Sizing = {
  memoryPerVmMib: limits.MEM_PER_VM_MIB,
  diskPerVmMib: limits.DISK_PER_VM_MIB,
  vcpusPerVm: limits.VCPUS_PER_VM,
  overheadMib: limits.VM_OVERHEAD_MIB,
  hostReserveMib: limits.HOST_RESERVE_MIB,
  baselineFloorMib: limits.HOST_BASELINE_FLOOR_MIB,
  diskReserveMib: limits.DISK_RESERVE_MIB,
};

/** Sizes of the process driver: a laptop of 4 GiB runs one turn. */
export const PROCESS_SIZING: Sizing = {
  memoryPerVmMib: limits.MEM_PER_PROCESS_MIB,
  diskPerVmMib: limits.DISK_PER_PROCESS_MIB,
  vcpusPerVm: limits.VCPUS_PER_PROCESS,
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

/**
 * A demand with the driver's defaults filled in; this is what the VM is started with. Throws `demand_invalid` unless memory and disk are
 * whole numbers of MiB above 0 and the vCPUs a number above 0.
 */
export function resolveDemand(demand: Demand, sizing: Sizing): Required<Demand> {
  const memoryMib = demand.memoryMib ?? sizing.memoryPerVmMib;
  const diskMib = demand.diskMib ?? sizing.diskPerVmMib;
  const vcpus = demand.vcpus ?? sizing.vcpusPerVm;
  for (const size of [memoryMib, diskMib]) {
    if (!Number.isSafeInteger(size) || size <= 0)
      throw new PlacementError('demand_invalid', `a demand of ${size} MiB is no whole number above 0`);
  }
  if (!Number.isFinite(vcpus) || vcpus <= 0) throw new PlacementError('demand_invalid', `a demand of ${vcpus} vCPUs is no number above 0`);
  return { memoryMib, diskMib, vcpus };
}

/** What a demand takes from a node under one driver's sizes; errors as {@link resolveDemand}. */
export function sizeDemand(demand: Demand, sizing: Sizing): Claim {
  const { memoryMib, diskMib } = resolveDemand(demand, sizing);
  return { memoryMib: memoryMib + sizing.overheadMib, diskMib };
}
