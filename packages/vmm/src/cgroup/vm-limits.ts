/** What the limits of one VMM depend on. */
export interface VmmSize {
  /** Memory of the guest, in MiB. */
  readonly memoryMib: number;
  readonly cpus: number;
  /** Memory that the VMM may need beside its guest's and a tenth of it, in MiB. */
  readonly overheadMib: number;
  /** Threads of the VMM beside those of its vCPUs. */
  readonly ownTasks: number;
}

/** One file of a group of cgroup v2, and what it is set to. */
export interface GroupLimit {
  readonly file: 'memory.max' | 'memory.swap.max' | 'cpu.max' | 'pids.max';
  readonly value: string;
}

/** Controllers of cgroup v2 that the limits of a VM need. */
export const CONTROLLERS = ['cpu', 'memory', 'pids'] as const;
/** Processor time for emulated devices and I/O beside the vCPUs, in `us` of each period. */
export const DEVICE_QUOTA_US = 50_000;
export const CPU_PERIOD_US = 100_000;
const MIB = 1024 * 1024;

/**
 * The limits of a VMM's group. A guest may use all that it was given: a limit at its size would kill it late, for what the host's side of
 * it needs. So memory is the guest's, a tenth of it for page tables and buffers of connections, and the overhead; none of it may be
 * swapped out, which would only move the load to the host's disk.
 */
export function vmLimits({ memoryMib, cpus, overheadMib, ownTasks }: VmmSize): GroupLimit[] {
  return [
    { file: 'memory.max', value: String((memoryMib + Math.ceil(memoryMib / 10) + overheadMib) * MIB) },
    { file: 'memory.swap.max', value: '0' },
    { file: 'pids.max', value: String(cpus + ownTasks) },
    { file: 'cpu.max', value: `${cpus * CPU_PERIOD_US + DEVICE_QUOTA_US} ${CPU_PERIOD_US}` },
  ];
}
