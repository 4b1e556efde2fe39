import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { admitTo } from '../machine/vm-folder.ts';
import type { BootSpec } from '../port/driver.ts';

/** Sockets of one QEMU: the host listens on both. Names are short: a socket's path may have 107 bytes. */
export interface VmSockets {
  readonly link: string;
  readonly qmp: string;
}

/** The sockets in a VM's folder. */
export function vmSockets(folder: string, rescue: boolean): VmSockets {
  const sockets = join(folder, 'l');
  return rescue ? { link: join(sockets, 'r'), qmp: join(sockets, 't') } : { link: join(sockets, 's'), qmp: join(sockets, 'q') };
}

/** Makes the folder of the sockets, where it is missing, for the VM's user to pass through. */
export async function makeSocketFolder(spec: BootSpec): Promise<void> {
  const folder = join(spec.folder, 'l');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await admitTo(folder, spec.owner);
}
