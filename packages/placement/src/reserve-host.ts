import { DRIVERS, type Driver, type HostReserve, type Sizings } from './size-demand.ts';

/**
 * What stays free of a host, part by part that of the strictest driver that it has or runs, never that of the one that asks: a host of VMs
 * needs its reserve whoever takes what is left. Of a host that has and runs none, that of the strictest there is.
 */
export function reserveHost(has: readonly Driver[], runs: readonly Driver[], sizings: Sizings): HostReserve {
  const reserve = { hostReserveMib: 0, baselineFloorMib: 0, diskReserveMib: 0 };
  for (const drivers of has.length + runs.length === 0 ? [DRIVERS] : [has, runs]) {
    for (const driver of drivers) {
      const sizing = sizings[driver];
      reserve.hostReserveMib = Math.max(reserve.hostReserveMib, sizing.hostReserveMib);
      reserve.baselineFloorMib = Math.max(reserve.baselineFloorMib, sizing.baselineFloorMib);
      reserve.diskReserveMib = Math.max(reserve.diskReserveMib, sizing.diskReserveMib);
    }
  }
  return reserve;
}
