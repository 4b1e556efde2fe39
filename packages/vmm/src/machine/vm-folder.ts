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
 * Makes the folder of a VM, which is absent or empty. Throws `bad_boot_spec` when it holds something.
 */
export async function makeVmFolder(spec: BootSpec): Promise<VmFolder> {
  const places = vmFolder(spec.folder);
  await mkdir(places.folder, { recursive: true, mode: 0o700 });
  if ((await readdir(places.folder)).length > 0) throw badSpec(spec, `its folder ${places.folder} is not empty`);
  await admitTo(places.folder, spec.owner);
  return places;
}

/** Lets the VM's user pass through a folder of its VM, where it can put nothing; no other VM's user does. */
export async function admitTo(folder: string, owner: GuestOwner | undefined): Promise<void> {
  if (owner !== undefined) await chown(folder, 0, owner.gid);
  await chmod(folder, owner === undefined ? 0o700 : 0o710);
}

/** Gives the disk of a dead VM, and the way to it, to the user of the VM that reads it. */
export async function handOver(places: VmFolder, owner: GuestOwner | undefined): Promise<void> {
  await admitTo(places.folder, owner);
  await giveTo(owner, places.scratch, 0o600);
}

/** Gives a file to the VM's user alone. */
export async function giveTo(owner: GuestOwner | undefined, file: string, mode: number): Promise<void> {
  await chmod(file, mode);
  if (owner !== undefined) await chown(file, owner.uid, owner.gid);
}
