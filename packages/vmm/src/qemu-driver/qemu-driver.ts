import type { BootFiles } from '@firecrew/rootfs';
import type { MachineBoot } from '../machine/boot-machine.ts';
import { checkVmSpec } from '../machine/check-vm-spec.ts';
import { startVm, VM_BOOT_TIMEOUT_MS } from '../machine/start-vm.ts';
import type { Accelerator, MachineModel, OpenBootFiles } from '../machine/vm-assets.ts';
import type { VmFolder } from '../machine/vm-folder.ts';
import type { BootSpec, Driver, DriverProbe, Vm } from '../port/driver.ts';
import { probeQemu } from './probe-qemu.ts';
import { makeSocketFolder, vmSockets } from './socket-folder.ts';
import { startQemu } from './start-qemu.ts';

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
}

/** The `qemu` driver: one VM without a network card per boot. */
export class QemuDriver implements Driver {
  readonly name = 'qemu';
  readonly #options: QemuDriverOptions;
  readonly #program: string;
  #probed: Promise<DriverProbe> | undefined;

  constructor(options: QemuDriverOptions) {
    this.#options = options;
    this.#program = options.program ?? `/usr/bin/qemu-system-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;
  }

  /** Boots once and remembers: the answer changes with the files, and then the driver is another one. */
  probe(): Promise<DriverProbe> {
    const { accelerator, machine = 'q35', openFiles, probeBoot: boots = true } = this.#options;
    this.#probed ??= probeQemu({ program: this.#program, accelerator, machine, openFiles, boots });
    return this.#probed;
  }

  async boot(spec: BootSpec): Promise<Vm> {
    checkVmSpec(spec, Object.values(vmSockets(spec.folder, false)));
    return await startVm(spec, this.#options.openFiles, (places, files, rescue) => this.#plan(spec, places, files, rescue));
  }

  async #plan(spec: BootSpec, places: VmFolder, files: BootFiles, rescue: boolean): Promise<Omit<MachineBoot, 'initrd' | 'files'>> {
    const { accelerator, machine = 'q35', cpus = 1, bootTimeoutMs = VM_BOOT_TIMEOUT_MS } = this.#options;
    await makeSocketFolder(spec);
    const sockets = vmSockets(places.folder, rescue);
    const start = () =>
      startQemu({
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
      });
    return { linkSocket: sockets.link, resync: true, timeoutMs: bootTimeoutMs, start };
  }
}
