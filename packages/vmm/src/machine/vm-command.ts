import { stat } from 'node:fs/promises';
import type { GuestOwner } from '../port/driver.ts';

/** Mode bits by which a group may use a device. */
const GROUP_READ_WRITE = 0o060;
/** Starts a program with a group beside the user's own, and becomes it. */
const SETPRIV = '/usr/bin/setpriv';

/** A program with its arguments, and the user to start it as; none for this process's own. */
export interface VmCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly user: Partial<GuestOwner>;
}

/**
 * How a VMM is started as the VM's user. Where the device is a group's to use, that group comes beside the user's own, which opens the
 * way to the VM's folder. Never root's group.
 */
export async function vmCommand(
  program: string,
  args: readonly string[],
  owner: GuestOwner | undefined,
  device: string | undefined,
): Promise<VmCommand> {
  if (owner === undefined) return { program, args, user: {} };
  const group = device === undefined ? undefined : await groupOf(device);
  if (group === undefined) return { program, args, user: owner };
  const ids = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, `--groups=${group}`, '--inh-caps=-all'];
  return { program: SETPRIV, args: [...ids, '--', program, ...args], user: {} };
}

async function groupOf(device: string): Promise<number | undefined> {
  const found = await stat(device).catch(() => undefined);
  if (found === undefined || found.gid === 0 || (found.mode & GROUP_READ_WRITE) !== GROUP_READ_WRITE) return undefined;
  return found.gid;
}
