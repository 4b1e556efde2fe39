import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError, messageOf } from '@firecrew/base';
import { createScratch } from '@firecrew/rootfs';
import { packTree } from '@firecrew/workspace';
import { putTree } from '../guest-client/transfers.ts';
import type { BootSpec, Vm } from '../port/driver.ts';
import { removeGuestFolder } from '../process-driver/remove-folder.ts';
import { killMarked } from '../processes/marked-processes.ts';
import { bootMachine, type MachineBoot } from './boot-machine.ts';
import type { BootedMachine } from './machine.ts';
import { MachineVm } from './machine-vm.ts';
import { IN_VM, type OpenBootFiles, type VmFiles } from './vm-assets.ts';
import { giveTo, handOver, makeVmFolder, type VmFolder } from './vm-folder.ts';

/** Time from the start of the VMM to the guest agent's first answer, in `ms`; emulation on a busy host takes most of it. */
export const VM_BOOT_TIMEOUT_MS = 90_000;

/** What a driver says of one boot: the VM itself, or the second one that reads the disk of the first when it is dead. */
export type PlanBoot = (
  spec: BootSpec,
  places: VmFolder,
  files: VmFiles,
  rescue: boolean,
) => Promise<Omit<MachineBoot, 'initrd' | 'files'>>;

/**
 * Makes folder and disk of a VM whose spec is checked, boots it, and gives it its roots. Rejects with `boot_failed` or
 * `bad_boot_spec`; nothing is then left behind.
 */
export async function startVm(spec: BootSpec, openFiles: OpenBootFiles, plan: PlanBoot): Promise<Vm> {
  const places = await makeVmFolder(spec);
  const boot = async (owned: BootSpec, rescue: boolean): Promise<BootedMachine> => {
    const files = { ...(await openFiles()), layer: spec.layer };
    try {
      const initrd = rescue ? places.rescueInitrd : places.initrd;
      return await bootMachine(owned, { ...(await plan(owned, places, files, rescue)), files, initrd });
    } finally {
      await files.close();
    }
  };
  let booted: BootedMachine | undefined;
  try {
    await createScratch({ path: places.scratch, sizeMib: spec.limits.diskMib });
    await giveTo(spec.owner, places.scratch, 0o600);
    booted = await boot(spec, false);
    await sendRoots(spec, booted, places);
    return new MachineVm(spec, booted, places.scratch, async () => boot(await forRescue(spec, places), true));
  } catch (cause) {
    await undo(spec, booted);
    throw new CodedError('boot_failed', `VM ${spec.vmId} did not come up: ${messageOf(cause)}`, {
      id: spec.vmId,
      action: 'Run `firecrew doctor`, then try again.',
      cause,
    });
  }
}

/** The spec of the VM that reads the disk of the first, whose VMM is gone. */
async function forRescue(spec: BootSpec, places: VmFolder): Promise<BootSpec> {
  const rescued = { ...spec, vmId: rescueVmId(spec.vmId) };
  if (spec.rescueOwner === undefined) return rescued;
  const owner = await spec.rescueOwner();
  await handOver(places, owner);
  return { ...rescued, owner };
}

/** Id of the VM that reads the disk of another one, which is dead by then: the two are never up together. */
export function rescueVmId(vmId: string): string {
  return `${vmId}.r`;
}

async function undo(spec: BootSpec, booted: BootedMachine | undefined): Promise<void> {
  await booted?.machine.kill();
  await booted?.machine.release();
  await booted?.endpoint.close();
  await killMarked(spec.attemptMarker);
  await removeGuestFolder(spec.folder);
}

/** The host's further roots go in over the link, like every file. */
async function sendRoots(spec: BootSpec, { endpoint }: BootedMachine, places: VmFolder): Promise<void> {
  if (spec.caBundle === null) return;
  const folder = join(places.folder, 'ca');
  await mkdir(folder, { mode: 0o700 });
  await writeFile(join(folder, 'ca.pem'), await readFile(spec.caBundle), { mode: 0o644 });
  await putTree(await endpoint.session(), dirname(IN_VM.caBundle), packTree(folder).stream, { readOnly: true });
}
