import {
  DISK_RESERVE_MIB,
  type Driver,
  HOST_BASELINE_FLOOR_MIB,
  HOST_RESERVE_MIB,
  MAX_HEALTH_AGE_MS,
  PROCESS_BASELINE_FLOOR_MIB,
  PROCESS_DISK_RESERVE_MIB,
  PROCESS_RESERVE_MIB,
} from '../src/index.ts';

/** A VM or sandbox as it truly is, and what the placer is not told of it. */
export interface Vm {
  readonly id: string;
  readonly driver: Driver;
  /** What it may take, the VMM's own memory included. */
  readonly claim: { readonly memoryMib: number; readonly diskMib: number };
  readonly serverForgets: { readonly size: boolean; readonly driver: boolean };
  readonly nodeForgets: { readonly size: boolean; readonly driver: boolean };
  /** The server holds a reservation for it. */
  reserved: boolean;
  booted: boolean;
  touchedMib: number;
  diskUsedMib: number;
}

/** What a node says of itself at one moment; it may come late, and its memory may be less than the truth. */
export interface Reading {
  /** When it was received. */
  readonly atMs: number;
  readonly usedMib: number;
  readonly freeMib: number | undefined;
  /** It does not say which VMs live. */
  readonly blind: boolean;
  readonly live: readonly Vm[];
  readonly diskUsed: ReadonlyMap<Vm, number>;
}

/** A host as it truly is; of its readings the last one that was delivered counts. */
export interface Host {
  readonly id: string;
  readonly totalMib: number;
  readonly diskMib: number;
  /** From its last report. */
  drivers: readonly Driver[];
  /** What it uses by itself. */
  ownMib: number;
  draining: boolean;
  connected: boolean;
  readonly vms: Vm[];
  readonly underWay: Reading[];
  reading: Reading | undefined;
  remembered: number | undefined;
  lastEndMs: number | undefined;
}

/**
 * Throws unless a host may have taken its newest turn: a second reckoning, from the truth of all claims that server or node tell of. Host
 * and claims stay under the total whatever was observed, and what was observed stays under it with the claims that it cannot contain.
 */
export function demandNoOvercommit(host: Host, driver: Driver, nowMs: number): void {
  const { reading } = host;
  const demand = (holds: boolean, what: string): void => {
    if (!holds) throw new Error(`${host.id}: ${what}`);
  };
  demand(!host.draining, 'placed on a host that drains');
  demand(host.connected, 'placed on a host that is not connected');
  demand(host.drivers.includes(driver), `placed with ${driver}, which the host has not`);
  if (reading === undefined || reading.blind || reading.freeMib === undefined)
    throw new Error(`${host.id}: placed without a whole reading`);
  demand(nowMs - reading.atMs <= MAX_HEALTH_AGE_MS, 'placed on a reading that is too old');

  const claims = new Set([...reading.live, ...host.vms.filter((vm) => vm.reserved)]);
  const isVmHost = [...host.drivers, ...[...claims].map((vm) => vm.driver)].some((each) => each !== 'process');
  const reserveMib = isVmHost ? HOST_RESERVE_MIB : PROCESS_RESERVE_MIB;
  const idleMib = Math.max(host.remembered ?? 0, isVmHost ? HOST_BASELINE_FLOOR_MIB : PROCESS_BASELINE_FLOOR_MIB);
  let claimedMib = 0;
  let unseenMib = 0;
  let diskMib = 0;
  for (const vm of claims) {
    claimedMib += vm.claim.memoryMib;
    if (!reading.live.includes(vm)) unseenMib += vm.claim.memoryMib;
    diskMib += vm.claim.diskMib - (reading.diskUsed.get(vm) ?? 0);
  }
  const memory = (usedMib: number) => `${usedMib} and ${reserveMib} of reserve exceed ${host.totalMib} MiB`;
  demand(claimedMib + idleMib + reserveMib <= host.totalMib, `claims and host of ${memory(claimedMib + idleMib)}`);
  demand(
    reading.usedMib + unseenMib + reserveMib <= host.totalMib,
    `observed use and new claims of ${memory(reading.usedMib + unseenMib)}`,
  );
  const diskReserveMib = isVmHost ? DISK_RESERVE_MIB : PROCESS_DISK_RESERVE_MIB;
  demand(diskMib + diskReserveMib <= reading.freeMib, `disk of ${diskMib} and ${diskReserveMib} MiB exceeds ${reading.freeMib} MiB free`);
}
