/** Longest age of a health reading that still counts, in ms, inclusive. */
export const MAX_HEALTH_AGE_MS = 30_000;
/** Longest age of a metrics reading that still ranks a node, in ms, inclusive. */
export const MAX_METRICS_AGE_MS = 60_000;
/** How long after the last VM's end a host's idle reading is believed, in ms. */
export const BASELINE_SETTLE_MS = 30_000;
/** The longest a queued turn waits for one running turn to end, in ms. */
export const LONGEST_WAIT_MS = 3_600_000;

/** Memory of one VM where neither backend nor flags say otherwise, in MiB. */
export const MEM_PER_VM_MIB = 8192;
/** Disk of one VM where neither backend nor flags say otherwise, in MiB. */
export const DISK_PER_VM_MIB = 12_288;
/** Memory the VMM itself takes beside its guest, in MiB. */
export const VM_OVERHEAD_MIB = 128;
/** Memory that stays free for a host that has or runs VMs, in MiB. */
export const HOST_RESERVE_MIB = 4096;
/** The least a host that has or runs VMs is believed to use by itself, in MiB. */
export const HOST_BASELINE_FLOOR_MIB = 2048;
/** Disk that stays free on a host that has or runs VMs, in MiB. */
export const DISK_RESERVE_MIB = 20_480;

/** Memory of one process sandbox, in MiB. */
export const MEM_PER_PROCESS_MIB = 1024;
/** Disk of one process sandbox, in MiB. */
export const DISK_PER_PROCESS_MIB = 2048;
/** Memory that stays free on a host of process sandboxes alone, in MiB. */
export const PROCESS_RESERVE_MIB = 512;
/** The least a host of process sandboxes alone is believed to use by itself, in MiB. */
export const PROCESS_BASELINE_FLOOR_MIB = 256;
/** Disk that stays free on a host of process sandboxes alone, in MiB. */
export const PROCESS_DISK_RESERVE_MIB = 1024;
/** vCPUs of one VM where neither backend nor flags say otherwise. */
export const VCPUS_PER_VM = 2;
/** CPUs of one process sandbox where neither backend nor flags say otherwise. */
export const VCPUS_PER_PROCESS = 1;
