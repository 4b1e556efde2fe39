import { chmod, chown, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BootSpec, GuestOwner } from '../port/driver.ts';
import { badSpec } from './check-vm-spec.ts';

/** Host paths of one VM's private folder that every VMM has. Names are short: a socket's path may have 107 bytes. */
export interface VmFolder {
  readonly folder: string;
  readonly scratch: string;
  readonly initrd: string;
  readonly rescueInitrd: string;
}

/** The places in a VM's folder. */
export function vmFolder(folder: string): VmFolder {
  return {
    folder,
    scratch: join(folder, 'scratch.ext4'),
    initrd: join(folder, 'initrd'),
    rescueInitrd: join(folder, 'rescue-initrd'),
  };
}

/**
 * Makes the folder of a VM, which is absent or empty. The VM's user passes through it and can put nothing in it. Throws
 * `bad_boot_spec` when it holds something.
 */
export async function makeVmFolder(spec: BootSpec): Promise<VmFolder> {
  const places = vmFolder(spec.folder);
  await mkdir(places.folder, { recursive: true, mode: 0o700 });
  if ((await readdir(places.folder)).length > 0) throw badSpec(spec, `its folder ${places.folder} is not empty`);
  await chmod(places.folder, spec.owner === undefined ? 0o700 : 0o711);
  return places;
}

/** Gives a file to the VM's user alone. */
export async function giveTo(owner: GuestOwner | undefined, file: string, mode: number): Promise<void> {
  await chmod(file, mode);
  if (owner !== undefined) await chown(file, owner.uid, owner.gid);
}
