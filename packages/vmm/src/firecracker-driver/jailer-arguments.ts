import { vmLimits } from '../cgroup/vm-limits.ts';
import type { GuestOwner } from '../port/driver.ts';

/** How VMs are confined by the jailer on this host. */
export interface JailerSettings {
  /** Absolute path of the jailer. */
  readonly program: string;
  /** Group below the root of cgroup v2 in which each VM gets its own; default `firecrew`. */
  readonly parentCgroup?: string | undefined;
  /** Further files of a VM's group, such as `io.max=8:0 wbps=104857600`. */
  readonly cgroup?: readonly string[] | undefined;
  /** Network namespace without interfaces that VMs join. */
  readonly networkNamespace?: string | undefined;
  /** Give each VM its own process namespace. Its exit code is then not known. */
  readonly processNamespace?: boolean | undefined;
  /** Let the jailer leave this process's session. Its exit code is then not known. */
  readonly daemonize?: boolean | undefined;
}

/** What one run of the jailer depends on. */
export interface JailerRun {
  readonly settings: JailerSettings;
  readonly id: string;
  readonly firecracker: string;
  readonly owner: GuestOwner;
  readonly chrootBase: string;
  readonly memoryMib: number;
  readonly diskMib: number;
  readonly cpus: number;
  /** Firecracker's own arguments. */
  readonly arguments: readonly string[];
}

/** Group of VMs where nothing else is said. */
export const PARENT_CGROUP = 'firecrew';
/** Memory of a Firecracker beside its guest's: a tenth for page tables and buffers of connections, and this, in MiB. */
const OVERHEAD_MIB = 32;
/** Threads and helpers of one Firecracker beside its vCPUs. */
const OWN_TASKS = 32;
/** Descriptors: 1,023 connections of a guest, disks, pipes and its own. */
const MAX_FILES = 2048;
/** Largest file beside the scratch disk, in MiB. */
const FILE_MARGIN_MIB = 1;
const MIB = 1024 * 1024;

/**
 * The command line of the jailer, without the program. It makes a group of its own only with cgroup v2 named and at least one value
 * given.
 */
export function jailerArguments(run: JailerRun): string[] {
  const { settings, owner } = run;
  const namespace = settings.networkNamespace;
  return [
    ...['--id', run.id, '--exec-file', run.firecracker, '--uid', String(owner.uid), '--gid', String(owner.gid)],
    ...['--chroot-base-dir', run.chrootBase, '--cgroup-version', '2', '--parent-cgroup', settings.parentCgroup ?? PARENT_CGROUP],
    ...[...groupLimits(run), ...(settings.cgroup ?? [])].flatMap((value) => ['--cgroup', value]),
    ...['--resource-limit', `fsize=${(run.diskMib + FILE_MARGIN_MIB) * MIB}`, '--resource-limit', `no-file=${MAX_FILES}`],
    ...(namespace === undefined ? [] : ['--netns', namespace]),
    ...(settings.processNamespace === true ? ['--new-pid-ns'] : []),
    ...(settings.daemonize === true ? ['--daemonize'] : []),
    ...['--', ...run.arguments],
  ];
}

/** What the jailer sets must be there, or it starts nothing: swap is left to `cgroup` of the settings, since not every kernel accounts for it. */
function groupLimits({ memoryMib, cpus }: JailerRun): string[] {
  return vmLimits({ memoryMib, cpus, overheadMib: OVERHEAD_MIB, ownTasks: OWN_TASKS })
    .filter(({ file }) => file !== 'memory.swap.max')
    .map(({ file, value }) => `${file}=${value}`);
}

/** Whether the process that is started is Firecracker itself once the jailer has done its part. */
export function staysChild({ processNamespace, daemonize }: JailerSettings): boolean {
  return processNamespace !== true && daemonize !== true;
}
