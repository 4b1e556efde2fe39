import { gzipSync } from 'node:zlib';
import { type CpioEntry, writeCpio } from './write-cpio.ts';

/** A module that guest-init loads, unpacked. */
export interface InitrdModule {
  readonly name: string;
  readonly content: Uint8Array;
}

const MODE = { program: 0o100755, data: 0o100644, folder: 0o40755 } as const;

/**
 * The initrd that all VMs of one kernel share: guest-init as pid 1, and modules in the order they are loaded in. The same parts give the same
 * bytes. Each VM's own configuration is appended to it as a second archive.
 */
export function buildInitrd(init: Uint8Array, modules: readonly InitrdModule[]): Buffer {
  const path = (name: string): string => `modules/${name}.ko`;
  const list = modules.map(({ name }) => `/${path(name)}\n`).join('');
  const entries: CpioEntry[] = [
    { path: 'init', mode: MODE.program, content: init },
    { path: 'modules', mode: MODE.folder },
    { path: 'modules/list', mode: MODE.data, content: Buffer.from(list) },
    ...modules.map(({ name, content }) => ({ path: path(name), mode: MODE.data, content })),
  ];
  return gzipSync(writeCpio(entries), { level: 9 });
}
