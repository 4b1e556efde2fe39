import type { Driver } from './size-demand.ts';

/** A VM, sandbox or placed turn that has a claim on a node. */
export interface Commitment {
  /** Computable by server and node before boot; compared for equality alone. */
  readonly vmId: string;
  /** What runs it; absent where nobody knows it, and then it counts as the one that takes most. */
  readonly driver?: Driver;
  /** Claimed memory in MiB with the VMM's own; absent where nobody knows it, and then the default of its driver counts. */
  readonly memoryMib?: number;
  /** Claimed disk in MiB; absent as above. */
  readonly diskMib?: number;
  /** Part of the claimed disk that is already in use, and so missing from the free disk, in MiB. */
  readonly diskUsedMib?: number;
}

/** One reading of a node's own numbers. */
export interface HealthReading {
  /** When it was received, on the clock of `nowMs`. */
  readonly atMs: number;
  readonly memoryTotalMib: number;
  readonly memoryUsedMib: number;
  /** Absent where the node could not say. */
  readonly diskFreeMib?: number;
  readonly diskTotalMib?: number;
}

/** One reading of a metrics collector; it only ranks. */
export interface MetricsReading {
  readonly atMs: number;
  readonly cpuPercent: number;
  readonly memoryPercent: number;
}

/** The VMs a node says it runs, orphans included, or why it could not say. */
export type LiveVms =
  | { readonly status: 'known'; readonly vms: readonly Commitment[] }
  | { readonly status: 'unknown'; readonly error: string };

/** All that placement knows of one node. */
export interface NodeRecord {
  readonly id: string;
  /** What people are shown. */
  readonly name: string;
  readonly draining: boolean;
  readonly connected: boolean;
  /** From the node's last complete capability report; empty where it never reported. */
  readonly drivers: readonly Driver[];
  /** Backend keys that the node can boot, by driver; empty where it never reported. */
  readonly images: Readonly<Partial<Record<Driver, readonly string[]>>>;
  /** Backends, by driver, whose image the node is getting now, or the driver itself with it; absent where it never said. */
  readonly comingImages?: Readonly<Partial<Record<Driver, readonly string[]>>>;
  /** Backends that guests of a driver have a model route for; absent where the node never said, which is as none. */
  readonly modelRoutes?: Readonly<Partial<Record<Driver, readonly string[]>>>;
  readonly health?: HealthReading;
  readonly metrics?: MetricsReading;
  readonly live: LiveVms;
  /** Turns placed on the node but not yet seen among its VMs, of ALL workspaces. */
  readonly reserved: readonly Commitment[];
  /** The host's idle footprint in MiB, as last remembered. */
  readonly rememberedBaselineMib?: number;
}
