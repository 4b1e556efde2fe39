/** How QEMU runs the guest's code. There is no fall-back between them: a device that opens and then hangs looks like one that works. */
export type Accelerator = 'kvm' | 'hvf' | 'tcg';

/** The machine models that are tried out; `q35` boots everywhere, `microvm` starts faster where KVM works. */
export type MachineModel = 'q35' | 'microvm';

/** The read-only files every VM of a backend is made of; all absolute paths on the host, checked by digest by whoever gives them. */
export interface VmAssets {
  /** bzImage or ELF with a PVH entry. */
  readonly kernel: string;
  /** Compressed cpio with guest-init and the modules of that kernel. */
  readonly initrd: string;
  /** Read-only image (squashfs, erofs or ext4) of the agent's system. */
  readonly base: string;
  /** Read-only image of Node, its libraries and the guest agent. */
  readonly payload: string;
  /** PATH that the image declares. */
  readonly path: string;
}

/** Serials by which guest-init finds its disks; letters depend on the bus. */
export const DISK_SERIAL = { base: 'firecrew-base', scratch: 'firecrew-scratch', payload: 'firecrew-payload' } as const;
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
