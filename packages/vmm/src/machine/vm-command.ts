import { stat } from 'node:fs/promises';
import { joinGroup } from '../cgroup/join-group.ts';
import type { GuestOwner } from '../port/driver.ts';

/** Mode bits by which a group may use a device. */
const GROUP_READ_WRITE = 0o060;
/** Starts a program as another user, with or without a group beside its own, and becomes it. */
const SETPRIV = '/usr/bin/setpriv';

/** A program with its arguments, and the user to start it as; none for this process's own. */
export interface VmCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly user: Partial<GuestOwner>;
}

/**
 * How a VMM is started as the VM's user. Where the device is a group's to use, that group comes beside the user's own, which opens the
 * way to the VM's folder. Never root's group. `cgroup` is joined first, with the rights of this process.
 */
export async function vmCommand(
  program: string,
  args: readonly string[],
  owner: GuestOwner | undefined,
  device: string | undefined,
  cgroup?: string,
): Promise<VmCommand> {
  const group = device === undefined || owner === undefined ? undefined : await groupOf(device);
  if (cgroup === undefined && group === undefined) return { program, args, user: owner ?? {} };
  const [first, ...rest] = [
    ...(cgroup === undefined ? [] : joinGroup(cgroup)),
    ...(owner === undefined ? [] : become(owner, group)),
    program,
    ...args,
  ];
  return { program: first ?? program, args: rest, user: {} };
}

function become({ uid, gid }: GuestOwner, group: number | undefined): string[] {
  const groups = group === undefined ? '--clear-groups' : `--groups=${group}`;
  return [SETPRIV, `--reuid=${uid}`, `--regid=${gid}`, groups, '--inh-caps=-all', '--'];
}

async function groupOf(device: string): Promise<number | undefined> {
  const found = await stat(device).catch(() => undefined);
  if (found === undefined || found.gid === 0 || (found.mode & GROUP_READ_WRITE) !== GROUP_READ_WRITE) return undefined;
  return found.gid;
}
