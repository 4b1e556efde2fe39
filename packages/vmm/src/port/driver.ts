import type { LinkRefusal, LinkSession, LinkStream } from '@firecrew/link';
import type { GuestRequest, HostRequest, Isolation, Trailer } from '@firecrew/protocol';
import type { SharedFile } from '@firecrew/rootfs';
import type { ArchiveTrailer, ByteSource } from '@firecrew/workspace';

/** What a driver found out about this machine. */
export interface DriverProbe {
  readonly available: boolean;
  readonly isolation: Isolation;
  /** What separates the guest and what does not, or why the driver cannot be used; one text for a person. */
  readonly detail: string;
}

/** A folder or file of the host that the guest may read. */
export interface ReadOnlyBind {
  /** Absolute real path on the host. */
  readonly source: string;
  /** Absolute path in the guest. */
  readonly target: string;
}

/** The one user whose files a VM's are on the host, and as whom its VMM runs, when the driver runs as root. */
export interface GuestOwner {
  readonly uid: number;
  readonly gid: number;
}

/** Everything one VM is made of. */
export interface BootSpec {
  readonly vmId: string;
  /** Absolute path of this VM's private folder: short, absent or empty; made with mode 0700, removed by `destroy`. */
  readonly folder: string;
  readonly guestAgent: { readonly node: string; readonly bundle: string };
  readonly bindPaths: readonly ReadOnlyBind[];
  /** The guest's PATH; the pinned Node comes after it. */
  readonly path: string;
  /** PEM file of further roots, given to Node in the guest; null for none. */
  readonly caBundle: string | null;
  readonly limits: { readonly memoryMib: number; readonly diskMib: number };
  readonly owner?: GuestOwner;
  /** Gives the user of the second VM that reads the disk of this one when it is dead; without it that VM has the user of the first. */
  readonly rescueOwner?: () => Promise<GuestOwner>;
  /** Disk of an earlier VM of this image, below what this one writes; a driver without layers refuses it. Held open by the caller until `destroy`. */
  readonly layer?: SharedFile;
  /** Without it a driver that cannot isolate here refuses to boot. */
  readonly allowUnisolated: boolean;
  /**
   * Value of `FIRECREW_ATTEMPT` in every process of the VM: 8 to 200 of letters, digits and `_.:/-`, no secret. All that carries it is
   * killed with the VM, so it belongs to one VM at a time and to no process of the host.
   */
  readonly attemptMarker: string;
  /** Tell execs where their model route is; default false. */
  readonly modelRoute?: boolean;
  /** Further variables of every exec, below the caller's own. */
  readonly environment?: Readonly<Record<string, string>>;
  /** A stream the guest opened; the handler calls `stream.reply` once. */
  readonly onStream: (stream: LinkStream, request: GuestRequest, session: LinkSession) => unknown;
  /** A dial that was refused; for the audit. */
  readonly onRefused: (refusal: LinkRefusal) => void;
  /** The link is up; the guest agent answers its first request after that. For measuring. */
  readonly onLinkUp?: () => void;
}

/** Where things are in the guest; all absolute. */
export interface GuestPaths {
  readonly workspace: string;
  readonly home: string;
  readonly tmp: string;
  /** Read-only files of the agent. */
  readonly agentDir: string;
  /** Task text, feedback and harness settings; never delivered. */
  readonly taskDir: string;
}

/** How the VM's own process ended. */
export interface VmExit {
  readonly code: number | null;
  readonly signal: string | null;
  /** Why, as a code of its driver's closed list (`guest_panic`, `guest_poweroff`, ...); absent where the driver names none. */
  readonly cause?: string;
  /** What is known of the reason, for a person; parts of it may be the guest's own words. */
  readonly detail?: string;
}

/** What `destroy` could and could not do; `left` names each process and path that is still there. */
export interface DestroyReport {
  readonly removed: boolean;
  readonly killed: number;
  readonly left: readonly string[];
}

/** A tree on its way out. */
export interface OutgoingTree {
  /** Canonical tar, to be read once. It fails where the tree could not be read to its end. */
  readonly archive: ByteSource;
  /** What was sent, compared with what was received of it, after the archive has ended. Rejects when there is no proof that all came. */
  readonly trailer: (received: ArchiveTrailer) => Promise<Trailer>;
}

/** What the exclusion rule needs to know of the base. */
export type TreeExclusion = Extract<HostRequest, { t: 'get' }>['exclude'];

/** One VM or sandbox. */
export interface Vm {
  readonly id: string;
  readonly isolation: Isolation;
  readonly guestPaths: GuestPaths;
  /** Host path of the socket that the guest dials. */
  readonly socketPath: string;
  /** Host ids of the processes of this VM that live now. */
  pids(): Promise<number[]>;
  /** The live session, or the next one. Rejects with `vm_exited`, `vm_destroyed` or `link_not_up`. */
  session(timeoutMs?: number): Promise<LinkSession>;
  /**
   * Stops the guest and reads a folder of its disk (`path` as the guest sees it) from the host, without the guest agent's help.
   * Rejects with `rescue_refused` for a path that leads elsewhere.
   */
  rescue(path: string, exclude?: TreeExclusion): Promise<OutgoingTree>;
  /**
   * Ends the guest in order and gives the host path of its disk, a clean file system that may be moved away. Absent where a VM has none.
   * Rejects with `guest_unclean` when there was no orderly end.
   */
  seal?(): Promise<string>;
  /** Ends everything the VM is and owns. Idempotent; never rejects. */
  destroy(): Promise<DestroyReport>;
  /** Settles when the VM's own process is gone. Never rejects. */
  readonly exited: Promise<VmExit>;
}

/** The port that a driver implements. */
export interface Driver {
  readonly name: 'process' | 'qemu' | 'firecracker';
  probe(): Promise<DriverProbe>;
  /** Settles when the guest agent has answered. Rejects with `boot_failed`, `bad_boot_spec`, `socket_path_too_long`, `isolation_missing`; nothing is then left behind. */
  boot(spec: BootSpec): Promise<Vm>;
}
