import type { BootFiles, SharedFile } from '@firecrew/rootfs';

/** How QEMU runs the guest's code. There is no fall-back between them: a device that opens and then hangs looks like one that works. */
export type Accelerator = 'kvm' | 'hvf' | 'tcg';

/** The machine models that are tried out; `q35` boots everywhere, `microvm` starts faster where KVM works. */
export type MachineModel = 'q35' | 'microvm';

/** Opens what a VM boots from, checked and held; called for every boot, and what it gave is closed once the VMM has started. */
export type OpenBootFiles = () => Promise<BootFiles>;

/** What one VM has of files that others may have too. */
export interface VmFiles extends BootFiles {
  /** Undefined for a VM that lies on its image alone. */
  readonly layer: SharedFile | undefined;
}

/** Serials by which guest-init finds its disks; letters depend on the bus. */
export const DISK_SERIAL = {
  base: 'firecrew-base',
  scratch: 'firecrew-scratch',
  payload: 'firecrew-payload',
  layer: 'firecrew-layer',
} as const;
/** Name of the virtual serial port that carries the link. */
export const LINK_PORT_NAME = 'firecrew.link.0';
/** Account that commands run as in a VM; the same as under bubblewrap. */
export const GUEST_USER = { uid: 1000, gid: 1000 } as const;
/** Where guest-init mounts the payload, and where the agent dials. */
export const IN_VM = {
  payload: '/opt/firecrew',
  node: '/opt/firecrew/bin/node',
  socketPath: '/run/firecrew/link.sock',
  caBundle: '/firecrew/ca/ca.pem',
} as const;
