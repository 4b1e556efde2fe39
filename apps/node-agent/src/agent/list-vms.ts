import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, messageOf } from '@firecrew/base';
import { MAX_NODE_VMS, type NodeVm, type NodeVms, type TurnSpec } from '@firecrew/protocol';
import { readSpec, readTurnFolderName, turnPaths } from '../turn-folder/turn-folder.ts';
import { readVmFolderName } from '../turn-folder/vm-folder-name.ts';

const ERROR_MAX_CHARS = 500;
/** What a VM that reads the disk of a dead one leaves in the folder of that. */
const RESCUE_FILE = 'rescue-initrd';

/**
 * The VMs that are on this host, by the folders of the turns: each VM has one of its own there from before its boot until nothing of it is left.
 * `specOf` gives the specification of a turn folder where it is known already. A list that could not be read is not an empty one.
 */
export async function listVms(turns: string, specOf: (folder: string) => TurnSpec | undefined): Promise<NodeVms> {
  try {
    const found: NodeVm[] = [];
    // The agent makes this folder as it starts: where it is gone, VMs may well run, so that is an error here.
    for (const folder of await readdir(turns)) {
      const key = readTurnFolderName(folder);
      if (key !== undefined) found.push(...(await vmsOf(key, join(turns, folder), specOf(folder))));
    }
    if (found.length > MAX_NODE_VMS) return { status: 'unknown', error: `there are ${found.length} VMs, more than ${MAX_NODE_VMS}` };
    return { status: 'known', vms: found };
  } catch (error) {
    return { status: 'unknown', error: messageOf(error).slice(0, ERROR_MAX_CHARS) };
  }
}

async function vmsOf(key: Pick<NodeVm, 'turnId' | 'attempt'>, folder: string, known: TurnSpec | undefined): Promise<NodeVm[]> {
  const places = (await namesIn(folder)).flatMap((name) => readVmFolderName(name) ?? []);
  if (places.length === 0) return [];
  // Of a folder that is not understood its VMs count all the same, and as the largest: no other turn is to be placed on top of them.
  const spec = known ?? (await readSpec(turnPaths(folder)).catch(() => null));
  const demand = spec === null ? null : { driver: spec.driver, memoryMib: spec.demand.memoryMib, diskMib: spec.demand.diskMib };
  return await Promise.all(
    places.map(async ({ folder: place, name, kind }) => {
      const isRead = (await namesIn(join(folder, place))).includes(RESCUE_FILE);
      return { ...key, name, kind: isRead ? ('rescue' as const) : kind, demand };
    }),
  );
}

/** The names in a folder; none when it is gone, or is none. */
async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw error;
  });
}
