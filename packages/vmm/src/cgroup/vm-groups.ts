import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, codeOf, messageOf } from '@firecrew/base';
import { vmCommand } from '../machine/vm-command.ts';
import { machineId } from '../processes/machine-id.ts';
import { chooseParent } from './choose-parent.ts';
import { type GroupTrial, judgeLimits, type LimitsVerdict, type LimitTrial } from './judge-limits.ts';
import { removeGroup, removeStaleGroups } from './vm-cgroup.ts';
import { CONTROLLERS, type GroupLimit, vmLimits } from './vm-limits.ts';

const JOIN_TIMEOUT_MS = 10_000;
const NONCE_BYTES = 4;
/** A VM as small as one that does nothing: the trial asks whether limits can be set, not which. */
const TRIAL_LIMITS = vmLimits({ memoryMib: 64, cpus: 1, overheadMib: 0, ownTasks: 16 });

/** The user of nobody in particular, as whom nothing but the trial's program runs. */
const TRIAL_USER = { uid: 65_534, gid: 65_534 };

/** How VMs of a driver are limited by the host. */
export interface GroupSettings {
  /** Group below the root of cgroup v2 in which each VM gets its own; default: the group of this process. */
  readonly parent?: string | undefined;
  /** Boot nothing where a limit cannot be set. */
  readonly required?: boolean | undefined;
}

/** Where cgroups are found, and how one comes and goes; for tests. */
export interface CgroupPlaces {
  readonly mountsFile: string;
  readonly ownFile: string;
  readonly make: (group: string) => Promise<unknown>;
  readonly remove: (group: string) => Promise<boolean>;
}

const PLACES: CgroupPlaces = {
  mountsFile: '/proc/self/mountinfo',
  ownFile: '/proc/self/cgroup',
  make: (group) => mkdir(group),
  remove: removeGroup,
};

/** The groups of the VMs of one driver. What can be limited here is tried out once. */
export class VmGroups {
  readonly #settings: GroupSettings;
  readonly #places: CgroupPlaces;
  #verdict: Promise<LimitsVerdict> | undefined;

  constructor(settings: GroupSettings, places: CgroupPlaces = PLACES) {
    this.#settings = settings;
    this.#places = places;
  }

  /** How VMs are limited here, after a trial with a group of its own. Never rejects. */
  verdict(): Promise<LimitsVerdict> {
    this.#verdict ??= this.#try().then((trial) => judgeLimits(trial, this.#settings.required ?? false));
    return this.#verdict;
  }

  /** The verdict for a VM that is about to be made. Rejects with `vm_limits_missing` where limits are demanded and cannot be set. */
  async demand(vmId: string): Promise<LimitsVerdict> {
    const verdict = await this.verdict();
    if (verdict.refused) {
      throw new CodedError('vm_limits_missing', `VM ${vmId} would run without limits that are demanded. ${verdict.detail}.`, {
        id: vmId,
        action: 'Delegate a group of cgroup v2 to the node agent (docs/operating.md, Limits of VMs), or do not demand it.',
      });
    }
    if (verdict.parent !== undefined) await removeStaleGroups(verdict.parent, Date.now());
    return verdict;
  }

  /** Makes the group of one VMM with those of the limits that can be set here. Rejects with `vm_group_failed`; nothing is left then. */
  async make(group: string, limits: readonly GroupLimit[], files: LimitsVerdict['files']): Promise<void> {
    try {
      await this.#places.make(group);
      for (const { file, value } of limits) if (files.includes(file)) await writeControl(join(group, file), value);
    } catch (cause) {
      await this.#places.remove(group);
      throw new CodedError('vm_group_failed', `The group ${group} of a VM could not be made: ${messageOf(cause)}`, {
        id: group,
        action: 'See that nobody else changes the groups below it, then try again.',
        cause,
      });
    }
  }

  /** Ends what still runs in a group and removes it; false when it is still there. */
  remove(group: string): Promise<boolean> {
    return this.#places.remove(group);
  }

  async #try(): Promise<GroupTrial> {
    let group: string | undefined;
    try {
      const { mountsFile, ownFile } = this.#places;
      const [mounts, own] = await Promise.all([readFile(mountsFile, 'utf8'), readFile(ownFile, 'utf8')]);
      const choice = chooseParent({ mounts, own, named: this.#settings.parent });
      if ('why' in choice) return choice;
      const parent = choice.folder;
      const refusals = await prepareParent(parent, this.#settings.parent !== undefined);
      group = join(parent, machineId('trial', randomBytes(NONCE_BYTES).toString('hex')));
      await this.#places.make(group);
      const limits: LimitTrial[] = [];
      for (const limit of TRIAL_LIMITS) limits.push(await tryLimit(group, limit, refusals));
      if (limits.some(({ why }) => why === undefined)) await tryJoin(group);
      return { parent, limits };
    } catch (error) {
      return { why: `no group can be made for a VM: ${messageOf(error)}` };
    } finally {
      if (group !== undefined) await this.#places.remove(group);
    }
  }
}

/** Lets groups below the parent have the controllers that it has itself. Gives the reason for each that it cannot. */
async function prepareParent(parent: string, isNamed: boolean): Promise<Map<string, string>> {
  if (isNamed) await mkdir(parent).catch(passOver('EEXIST'));
  const given = words(await readFile(join(parent, 'cgroup.controllers'), 'utf8'));
  const subtree = join(parent, 'cgroup.subtree_control');
  const refusals = new Map<string, string>();
  for (const name of CONTROLLERS) {
    if (!given.includes(name)) {
      refusals.set(name, `${parent} has no ${name} controller`);
      continue;
    }
    if (words(await readFile(subtree, 'utf8')).includes(name)) continue;
    await writeControl(subtree, `+${name}`).catch((error: unknown) => {
      const busy = codeOf(error) === 'EBUSY' ? `${parent} holds processes itself` : messageOf(error);
      refusals.set(name, `${name} cannot be limited below ${parent}: ${busy}`);
    });
  }
  return refusals;
}

async function tryLimit(group: string, { file, value }: GroupLimit, refusals: ReadonlyMap<string, string>): Promise<LimitTrial> {
  const refusal = refusals.get(file.split('.')[0] ?? '');
  if (refusal !== undefined) return { file, why: refusal };
  return writeControl(join(group, file), value).then(
    () => ({ file }),
    (error: unknown) => ({ file, why: messageOf(error) }),
  );
}

/** Whether a process of ours may go there: it needs the right at the group that both have above them, too. Root's gives up its rights then. */
async function tryJoin(group: string): Promise<void> {
  const owner = process.getuid?.() === 0 ? TRIAL_USER : undefined;
  const { program, args } = await vmCommand('/bin/true', [], owner, undefined, group);
  const options = { timeout: JOIN_TIMEOUT_MS, killSignal: 'SIGKILL', env: {} } as const;
  await new Promise<void>((resolve, reject) => {
    execFile(program, args, options, (error, _stdout, stderr) => {
      if (error === null) resolve();
      else reject(new Error(stderr.trim() || messageOf(error)));
    });
  });
}

/** A file of a group is there when its controller is: it is never made. */
async function writeControl(file: string, value: string): Promise<void> {
  const handle = await open(file, constants.O_WRONLY);
  try {
    await handle.write(value);
  } finally {
    await handle.close();
  }
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

const passOver =
  (code: string) =>
  (error: unknown): void => {
    if (codeOf(error) !== code) throw error;
  };
