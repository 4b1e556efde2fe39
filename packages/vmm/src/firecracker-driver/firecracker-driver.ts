import { randomBytes } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { CGROUP_ROOT, removeStaleGroups } from '../cgroup/vm-cgroup.ts';
import type { MachineBoot } from '../machine/boot-machine.ts';
import { badSpec, checkVmSpec } from '../machine/check-vm-spec.ts';
import { startVm } from '../machine/start-vm.ts';
import type { OpenBootFiles, VmFiles } from '../machine/vm-assets.ts';
import type { VmFolder } from '../machine/vm-folder.ts';
import type { BootSpec, Driver, DriverProbe, Vm } from '../port/driver.ts';
import { machineId } from '../processes/machine-id.ts';
import { API_TIMEOUT_MS } from './firecracker-api.ts';
import type { FirecrackerSettings } from './firecracker-settings.ts';
import type { JailerSettings } from './jailer-arguments.ts';
import { probeFirecracker } from './probe-firecracker.ts';
import { type DiskLimits, diskLimiter } from './rate-limits.ts';
import { runPlaces } from './run-places.ts';
import { startFirecracker } from './start-firecracker.ts';
import { parentGroup, workplaceOf } from './workplace.ts';

/** Time from the start of Firecracker to the guest agent's first answer, in `ms`. */
export const FIRECRACKER_BOOT_TIMEOUT_MS = 30_000;
const NONCE_BYTES = 4;

/** How the driver runs VMs on this host. */
export interface FirecrackerDriverOptions {
  readonly openFiles: OpenBootFiles;
  /** Absolute path of Firecracker; default `/usr/local/bin/firecracker`. */
  readonly program?: string;
  /** Confinement of every VM, which needs root and a user for each VM; without it Firecracker runs as that user alone. */
  readonly jailer?: JailerSettings;
  readonly cpus?: number;
  readonly diskLimits?: DiskLimits;
  readonly bootTimeoutMs?: number;
  readonly apiTimeoutMs?: number;
  /** Folder that the folders of VMs are made in; `probe` looks at its file system. */
  readonly vmRoot?: string;
  /** Read the files of a boot for `probe`; default true. False where another process of this host has done so. */
  readonly probeFiles?: boolean;
  readonly kvmDevice?: string;
  readonly cgroupRoot?: string;
}

/** The `firecracker` driver: one microVM without a network card per boot. */
export class FirecrackerDriver implements Driver {
  readonly name = 'firecracker';
  readonly #settings: FirecrackerSettings;
  readonly #options: FirecrackerDriverOptions;

  /** Throws `bad_rate_limit`. */
  constructor(options: FirecrackerDriverOptions) {
    diskLimiter(options.diskLimits);
    this.#options = options;
    this.#settings = {
      program: options.program ?? '/usr/local/bin/firecracker',
      jailer: options.jailer,
      cpus: options.cpus ?? 1,
      diskLimits: options.diskLimits,
      bootTimeoutMs: options.bootTimeoutMs ?? FIRECRACKER_BOOT_TIMEOUT_MS,
      apiTimeoutMs: options.apiTimeoutMs ?? API_TIMEOUT_MS,
      kvmDevice: options.kvmDevice ?? '/dev/kvm',
      cgroupRoot: options.cgroupRoot ?? CGROUP_ROOT,
      architecture: process.arch,
    };
  }

  /** Looks at what a boot needs. Starts no VM: `firecrew doctor --vm-selftest` does. */
  probe(): Promise<DriverProbe> {
    const { openFiles, probeFiles = true, vmRoot } = this.#options;
    return probeFirecracker(this.#settings, probeFiles ? openFiles : undefined, vmRoot);
  }

  async boot(spec: BootSpec): Promise<Vm> {
    const { jailer } = this.#settings;
    const sockets = [false, true].flatMap((rescue) => Object.values(runPlaces(spec.folder, rescue)));
    checkVmSpec(spec, sockets);
    if (jailer !== undefined && spec.owner === undefined) throw badSpec(spec, 'the jailer needs a user for it, which only root can give');
    if (jailer !== undefined) await removeStaleGroups(parentGroup(this.#settings, jailer), Date.now());
    return startVm(spec, this.#options.openFiles, (owned, places, files, rescue) => this.#plan(owned, places, files, rescue));
  }

  async #plan(spec: BootSpec, places: VmFolder, files: VmFiles, rescue: boolean): Promise<Omit<MachineBoot, 'initrd' | 'files'>> {
    // The jailer names the jail after the file, not after a link to it.
    const program = await realpath(this.#settings.program).catch(() => this.#settings.program);
    const settings = { ...this.#settings, program };
    const id = machineId(spec.attemptMarker, randomBytes(NONCE_BYTES).toString('hex'));
    const run = runPlaces(spec.folder, rescue);
    const launch = { settings, spec, id, places, run, files, rescue };
    const workplace = workplaceOf(launch);
    await workplace.make();
    return {
      linkSocket: run.linkSocket,
      resync: false,
      group: workplace.group,
      timeoutMs: settings.bootTimeoutMs,
      start: () => startFirecracker(launch, workplace),
    };
  }
}
