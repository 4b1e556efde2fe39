import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { VmFiles } from '../machine/vm-assets.ts';
import { vmCommand } from '../machine/vm-command.ts';
import { giveTo, type VmFolder } from '../machine/vm-folder.ts';
import type { BootSpec, GuestOwner } from '../port/driver.ts';
import { ATTEMPT_VARIABLE } from '../processes/marked-processes.ts';
import type { FirecrackerSettings } from './firecracker-settings.ts';
import { type Jail, jailOf, makeJail, placeOwn, placeShared } from './jail.ts';
import { type JailerSettings, jailerArguments, PARENT_CGROUP, staysChild } from './jailer-arguments.ts';
import { type DiskSerials, diskSerial } from './plan-calls.ts';
import { RUN_NAMES, type RunName, type RunPlaces } from './run-places.ts';
import { adoptVmm, spawnVmm, type VmmProcess } from './vmm-process.ts';

/** What one Firecracker is started with. */
export interface FirecrackerLaunch {
  readonly settings: FirecrackerSettings;
  readonly spec: BootSpec;
  /** Id of this one Firecracker; never used before. */
  readonly id: string;
  readonly places: VmFolder;
  readonly run: RunPlaces;
  readonly files: VmFiles;
  readonly rescue: boolean;
}

/** A Firecracker that was started and has been told nothing yet. */
export interface StartedFirecracker {
  readonly process: VmmProcess;
  /** Paths as Firecracker opens them. */
  readonly paths: Readonly<Record<RunName, string>>;
  readonly serials: DiskSerials;
}

/** Where Firecracker works, and what it finds there: in a jail, or in a folder of its user's. */
export interface Workplace {
  /** Makes the folder. Throws `jail_failed`. */
  readonly make: () => Promise<void>;
  /** Puts the files there and starts it. Rejects with `jail_failed`; nothing of it runs then. */
  readonly start: () => Promise<StartedFirecracker>;
  /** Its group, where the jailer makes one. */
  readonly group: string | undefined;
}

/** The workplace of a launch; `owner` is there whenever there is a jailer. */
export function workplaceOf(launch: FirecrackerLaunch): Workplace {
  const { jailer } = launch.settings;
  const { owner } = launch.spec;
  return jailer === undefined || owner === undefined ? plainWorkplace(launch) : jailedWorkplace(launch, jailer, owner);
}

/** The group in which the jailer makes that of each VM. */
export function parentGroup({ cgroupRoot }: FirecrackerSettings, { parentCgroup }: JailerSettings): string {
  return join(cgroupRoot, parentCgroup ?? PARENT_CGROUP);
}

/** Files of the stores travel as descriptors, in this order from 3 on: the VM's user needs no way to their folders. */
const PASSED = ['vmlinux', 'base', 'payload', 'layer'] as const;
const FIRST_PASSED_FD = 3;

function plainWorkplace(launch: FirecrackerLaunch): Workplace {
  const { settings, spec, run, places, files, rescue, id } = launch;
  const passed = (name: (typeof PASSED)[number]): string => `/proc/self/fd/${FIRST_PASSED_FD + PASSED.indexOf(name)}`;
  return {
    group: undefined,
    make: async () => {
      await mkdir(run.folder, { mode: 0o700 });
      await giveTo(spec.owner, run.folder, 0o700);
    },
    start: async () => {
      const { program, args, user } = await vmCommand(
        settings.program,
        ['--id', id, '--api-sock', run.apiSocket],
        spec.owner,
        settings.kvmDevice,
      );
      const process = spawnVmm(program, args, {
        cwd: '/',
        env: { [ATTEMPT_VARIABLE]: spec.attemptMarker },
        stdio: ['ignore', 'pipe', 'pipe', ...PASSED.flatMap((name) => files[name]?.handle.fd ?? [])],
        detached: true,
        ...user,
      });
      const [base, payload] = await Promise.all([files.base.handle.stat({ bigint: true }), files.payload.handle.stat({ bigint: true })]);
      return {
        process,
        paths: {
          ...namesIn(run.folder),
          kernel: passed('vmlinux'),
          base: passed('base'),
          payload: passed('payload'),
          layer: passed('layer'),
          scratch: places.scratch,
          initrd: rescue ? places.rescueInitrd : places.initrd,
        },
        serials: {
          base: diskSerial(base),
          payload: diskSerial(payload),
          scratch: diskSerial(await stat(places.scratch, { bigint: true })),
          layer: files.layer === undefined ? undefined : diskSerial(await files.layer.handle.stat({ bigint: true })),
        },
      };
    },
  };
}

function jailedWorkplace(launch: FirecrackerLaunch, jailer: JailerSettings, owner: GuestOwner): Workplace {
  const { settings, spec, run, id } = launch;
  const jail = jailOf(spec.folder, id, settings.program);
  return {
    group: join(parentGroup(settings, jailer), id),
    make: () => makeJail(jail, run),
    start: async () => {
      await fillJail(jail, launch);
      const args = jailerArguments({
        settings: jailer,
        id,
        firecracker: settings.program,
        owner,
        chrootBase: jail.chrootBase,
        memoryMib: spec.limits.memoryMib,
        diskMib: spec.limits.diskMib,
        cpus: settings.cpus,
        arguments: ['--api-sock', `/${RUN_NAMES.api}`],
      });
      const options = {
        cwd: '/',
        env: { [ATTEMPT_VARIABLE]: spec.attemptMarker },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      } as const;
      const process = staysChild(jailer)
        ? spawnVmm(jailer.program, args, { ...options, stdio: [...options.stdio] })
        : await adoptVmm(jailer.program, args, { ...options, stdio: [...options.stdio] }, jail);
      const serial = async (name: RunName): Promise<string> => diskSerial(await stat(join(jail.root, RUN_NAMES[name]), { bigint: true }));
      return {
        process,
        paths: namesIn('/'),
        serials: {
          base: await serial('base'),
          payload: await serial('payload'),
          scratch: await serial('scratch'),
          layer: launch.files.layer === undefined ? undefined : await serial('layer'),
        },
      };
    },
  };
}

async function fillJail(jail: Jail, { files, places, rescue }: FirecrackerLaunch): Promise<void> {
  await placeShared(jail, RUN_NAMES.kernel, files.vmlinux);
  await placeShared(jail, RUN_NAMES.base, files.base);
  await placeShared(jail, RUN_NAMES.payload, files.payload);
  if (files.layer !== undefined) await placeShared(jail, RUN_NAMES.layer, files.layer);
  await placeOwn(jail, RUN_NAMES.initrd, rescue ? places.rescueInitrd : places.initrd);
  await placeOwn(jail, RUN_NAMES.scratch, places.scratch);
}

function namesIn(folder: string): Record<RunName, string> {
  // cast: the entries are those of the record
  return Object.fromEntries(Object.entries(RUN_NAMES).map(([key, name]) => [key, join(folder, name)])) as Record<RunName, string>;
}
