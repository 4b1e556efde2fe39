import { DRIVERS, type Driver, type HostReserve, type Sizings } from './size-demand.ts';

/** Drivers that a VM may have: its own, or any where nobody knows it. */
export function driversOf(known: Iterable<Driver>): readonly Driver[] {
  const drivers = [...known];
  return drivers.length === 0 ? DRIVERS : drivers;
}

/**
 * What stays free of a host, part by part that of the strictest of these drivers: what the host has and runs, never the one that asks.
 * A host of VMs needs its reserve whoever takes what is left. Without any driver, that of the strictest there is.
 */
export function reserveHost(drivers: Iterable<Driver>, sizings: Sizings): HostReserve {
  let hostReserveMib = 0;
  let baselineFloorMib = 0;
  let diskReserveMib = 0;
  for (const driver of driversOf(drivers)) {
    const sizing = sizings[driver];
    hostReserveMib = Math.max(hostReserveMib, sizing.hostReserveMib);
    baselineFloorMib = Math.max(baselineFloorMib, sizing.baselineFloorMib);
    diskReserveMib = Math.max(diskReserveMib, sizing.diskReserveMib);
  }
  return { hostReserveMib, baselineFloorMib, diskReserveMib };
}
