import type { JailerSettings } from './jailer-arguments.ts';
import type { DiskLimits } from './rate-limits.ts';

/** How Firecracker runs on this host. */
export interface FirecrackerSettings {
  /** Absolute path of the program; under the jailer its name holds `firecracker`. */
  readonly program: string;
  /** Confinement of every VM. Without it Firecracker runs as the VM's user and nothing more: for tests and laptops. */
  readonly jailer: JailerSettings | undefined;
  readonly cpus: number;
  /** Limits of the scratch disk; undefined for none. */
  readonly diskLimits: DiskLimits | undefined;
  /** From the start of Firecracker to the guest agent's first answer, in `ms`. */
  readonly bootTimeoutMs: number;
  /** Time for one answer of the API, and for the first dial, in `ms`. */
  readonly apiTimeoutMs: number;
  /** The KVM device, and where cgroup v2 is mounted. */
  readonly kvmDevice: string;
  readonly cgroupRoot: string;
  /** Processor of this host, as Node names it. */
  readonly architecture: string;
}
