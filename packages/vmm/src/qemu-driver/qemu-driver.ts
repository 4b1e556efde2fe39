import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { LimitsVerdict } from '../cgroup/judge-limits.ts';
import { type CgroupPlaces, type GroupSettings, VmGroups } from '../cgroup/vm-groups.ts';
import { type GroupLimit, vmLimits } from '../cgroup/vm-limits.ts';
import type { MachineBoot } from '../machine/boot-machine.ts';
import { checkVmSpec } from '../machine/check-vm-spec.ts';
import type { Machine } from '../machine/machine.ts';
import { startVm, VM_BOOT_TIMEOUT_MS } from '../machine/start-vm.ts';
import type { Accelerator, MachineModel, OpenBootFiles, VmFiles } from '../machine/vm-assets.ts';
import type { VmFolder } from '../machine/vm-folder.ts';
import type { BootSpec, Driver, DriverProbe, Vm } from '../port/driver.ts';
import { machineId } from '../processes/machine-id.ts';
import type { VmUsers } from '../users/vm-users.ts';
import { probeQemu } from './probe-qemu.ts';
import { TCG_CACHE_MIB } from './qemu-arguments.ts';
import { makeSocketFolder, vmSockets } from './socket-folder.ts';
import { startQemu, type VmGroup } from './start-qemu.ts';

/** How the driver runs VMs on this host. */
export interface QemuDriverOptions {
  readonly accelerator: Accelerator;
  readonly openFiles: OpenBootFiles;
  readonly machine?: MachineModel;
  /** Absolute path of the emulator; default: the one in `/usr/bin` for this processor. */
  readonly program?: string;
  readonly cpus?: number;
  readonly bootTimeoutMs?: number;
  /** Boot once for `probe`; default true. False where another process of this host has done so. */
  readonly probeBoot?: boolean;
  /** Where the VM of that boot gets its user from; default: it runs as this process. */
  readonly probeUsers?: Pick<VmUsers, 'take'>;
  /** Limits by the host; default: below the group of this process where that can be done, else none. */
  readonly cgroup?: GroupSettings;
  readonly cgroupPlaces?: CgroupPlaces;
}

/** Memory of a QEMU beside its guest's, a tenth of that, and its translated code, in MiB. */
export const QEMU_OVERHEAD_MIB = 192;
/** Threads of a QEMU beside its vCPUs: up to 64 for I/O on disks, and its own. */
export const QEMU_TASKS = 96;
const NONCE_BYTES = 4;

/** The `qemu` driver: one VM without a network card per boot. */
export class QemuDriver implements Driver {
  readonly name = 'qemu';
  readonly #options: QemuDriverOptions;
  readonly #program: string;
  readonly #groups: VmGroups;
  #probed: Promise<DriverProbe> | undefined;

  constructor(options: QemuDriverOptions) {
    this.#options = options;
    this.#groups = new VmGroups(options.cgroup ?? {}, options.cgroupPlaces);
    this.#program = options.program ?? `/usr/bin/qemu-system-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;
  }

  /** Boots once and remembers: the answer changes with the files, and then the driver is another one. */
  probe(): Promise<DriverProbe> {
    this.#probed ??= this.#probe();
    return this.#probed;
  }

  async #probe(): Promise<DriverProbe> {
    const { accelerator, machine = 'q35', openFiles, probeBoot: boots = true, probeUsers: users } = this.#options;
    const { refused, detail } = await this.#groups.verdict();
    if (refused) return { available: false, isolation: 'vm', detail: `limits of VMs are demanded and cannot be set: ${detail}` };
    const probe = await probeQemu({ program: this.#program, accelerator, machine, openFiles, boots, users });
    return probe.available ? { ...probe, detail: `${probe.detail}; ${detail}` } : probe;
  }

  /** Rejects also with `vm_limits_missing`, before anything is made. */
  async boot(spec: BootSpec): Promise<Vm> {
    checkVmSpec(spec, Object.values(vmSockets(spec.folder, false)));
    const verdict = await this.#groups.demand(spec.vmId);
    return await startVm(spec, this.#options.openFiles, (owned, places, files, rescue) =>
      this.#plan(owned, verdict, places, files, rescue),
    );
  }

  async #plan(
    spec: BootSpec,
    verdict: LimitsVerdict,
    places: VmFolder,
    files: VmFiles,
    rescue: boolean,
  ): Promise<Omit<MachineBoot, 'initrd' | 'files'>> {
    const { accelerator, machine = 'q35', cpus = 1, bootTimeoutMs = VM_BOOT_TIMEOUT_MS } = this.#options;
    await makeSocketFolder(spec);
    const sockets = vmSockets(places.folder, rescue);
    const launch = {
      program: this.#program,
      files,
      owner: spec.owner,
      attemptMarker: spec.attemptMarker,
      machine: {
        accelerator,
        machine,
        cpus,
        memoryMib: spec.limits.memoryMib,
        initrd: rescue ? places.rescueInitrd : places.initrd,
        scratch: places.scratch,
        rescue,
        linkSocket: sockets.link,
        qmpSocket: sockets.qmp,
      },
    };
    const name = machineId(spec.attemptMarker, randomBytes(NONCE_BYTES).toString('hex'));
    const path = verdict.parent === undefined ? undefined : join(verdict.parent, name);
    const start = async (): Promise<Machine> => {
      if (path === undefined) return startQemu({ ...launch, group: undefined });
      const group: VmGroup = { path, remove: () => this.#groups.remove(path) };
      await this.#groups.make(path, qemuLimits(spec.limits.memoryMib, cpus, accelerator), verdict.files);
      try {
        return await startQemu({ ...launch, group });
      } catch (error) {
        await group.remove();
        throw error;
      }
    };
    return { linkSocket: sockets.link, resync: true, timeoutMs: bootTimeoutMs, group: path, start };
  }
}

/** Limits of the QEMU of a VM. */
export function qemuLimits(memoryMib: number, cpus: number, accelerator: Accelerator): GroupLimit[] {
  const overheadMib = QEMU_OVERHEAD_MIB + (accelerator === 'tcg' ? TCG_CACHE_MIB : 0);
  return vmLimits({ memoryMib, cpus, overheadMib, ownTasks: QEMU_TASKS });
}
