import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BootSpec, GuestOwner } from '../port/driver.ts';

/** Host paths of one VM's private folder. Names are short: a socket's path may have 107 bytes. */
export interface VmFolder {
  readonly folder: string;
  readonly sockets: string;
  readonly linkSocket: string;
  readonly qmpSocket: string;
  readonly rescueLinkSocket: string;
  readonly rescueQmpSocket: string;
  readonly scratch: string;
  readonly initrd: string;
  readonly rescueInitrd: string;
}

/** The places in a VM's folder. */
export function vmFolder(folder: string): VmFolder {
  const sockets = join(folder, 'l');
  return {
    folder,
    sockets,
    linkSocket: join(sockets, 's'),
    qmpSocket: join(sockets, 'q'),
    rescueLinkSocket: join(sockets, 'r'),
    rescueQmpSocket: join(sockets, 't'),
    scratch: join(folder, 'scratch.ext4'),
    initrd: join(folder, 'initrd'),
    rescueInitrd: join(folder, 'rescue-initrd'),
  };
}

/** Makes the folder of a VM, which is absent or empty. The VM's user passes through it and can put nothing in it. */
export async function makeVmFolder(spec: BootSpec): Promise<VmFolder> {
  const places = vmFolder(spec.folder);
  await mkdir(places.sockets, { recursive: true, mode: 0o700 });
  if (spec.owner !== undefined) {
    await chmod(places.folder, 0o711);
    await chmod(places.sockets, 0o711);
  }
  return places;
}

/** Gives a file to the VM's user alone. */
export async function giveTo(owner: GuestOwner | undefined, file: string, mode: number): Promise<void> {
  await chmod(file, mode);
  if (owner !== undefined) await chown(file, owner.uid, owner.gid);
}
