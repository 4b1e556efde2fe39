import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '@firecrew/base';
import { createScratch } from '@firecrew/rootfs';
import { packTree } from '@firecrew/workspace';
import { putTree } from '../guest-client/transfers.ts';
import type { BootSpec, Driver, DriverProbe, Vm } from '../port/driver.ts';
import { removeGuestFolder } from '../process-driver/remove-folder.ts';
import { killMarked } from '../processes/marked-processes.ts';
import { type BootedGuest, bootGuest } from './boot-guest.ts';
import { checkVmSpec } from './check-vm-spec.ts';
import { probeQemu } from './probe-qemu.ts';
import { QemuVm } from './qemu-vm.ts';
import { type Accelerator, IN_VM, type MachineModel, type VmAssets } from './vm-assets.ts';
import { giveTo, makeVmFolder, type VmFolder, vmFolder } from './vm-folder.ts';

/** Time from the start of QEMU to the guest agent's first answer, in `ms`; emulation on a busy host takes most of it. */
export const VM_BOOT_TIMEOUT_MS = 90_000;

/** How the driver runs VMs on this host. */
export interface QemuDriverOptions {
  readonly accelerator: Accelerator;
  readonly assets: VmAssets;
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
    const { accelerator, assets, probeBoot = true } = this.#options;
    this.#probed ??= probeQemu(this.#program, accelerator, assets, probeBoot);
    return this.#probed;
  }

  async boot(spec: BootSpec): Promise<Vm> {
    checkVmSpec(spec);
    const places = await makeVmFolder(spec);
    let guest: BootedGuest | undefined;
    try {
      await createScratch({ path: places.scratch, sizeMib: spec.limits.diskMib });
      await giveTo(spec.owner, places.scratch, 0o600);
      guest = await this.#bootGuest(spec, places, false);
      await sendRoots(spec, guest, places);
      return new QemuVm(spec, places, guest, () => this.#bootGuest(spec, places, true));
    } catch (cause) {
      await this.#undo(spec, guest);
      throw new CodedError('boot_failed', `VM ${spec.vmId} did not come up: ${messageOf(cause)}`, {
        id: spec.vmId,
        action: 'Run `firecrew doctor`, then try again.',
        cause,
      });
    }
  }

  #bootGuest(spec: BootSpec, places: VmFolder, rescue: boolean): Promise<BootedGuest> {
    const { assets, accelerator, machine = 'q35', cpus = 1, bootTimeoutMs = VM_BOOT_TIMEOUT_MS } = this.#options;
    return bootGuest(spec, {
      program: this.#program,
      assets,
      initrd: rescue ? places.rescueInitrd : places.initrd,
      timeoutMs: bootTimeoutMs,
      machine: {
        accelerator,
        machine,
        cpus,
        memoryMib: spec.limits.memoryMib,
        kernel: assets.kernel,
        base: assets.base,
        payload: assets.payload,
        scratch: places.scratch,
        rescue,
        linkSocket: rescue ? places.rescueLinkSocket : places.linkSocket,
        qmpSocket: rescue ? places.rescueQmpSocket : places.qmpSocket,
      },
    });
  }

  async #undo(spec: BootSpec, guest: BootedGuest | undefined): Promise<void> {
    await guest?.endpoint.close();
    await killMarked(spec.attemptMarker);
    await removeGuestFolder(vmFolder(spec.folder).folder);
  }
}

/** The host's further roots go in over the link, like every file. */
async function sendRoots(spec: BootSpec, { endpoint }: BootedGuest, places: VmFolder): Promise<void> {
  if (spec.caBundle === null) return;
  const folder = join(places.folder, 'ca');
  await mkdir(folder, { mode: 0o700 });
  await writeFile(join(folder, 'ca.pem'), await readFile(spec.caBundle), { mode: 0o644 });
  await putTree(await endpoint.session(), join(IN_VM.caBundle, '..'), packTree(folder).stream, { readOnly: true });
}
