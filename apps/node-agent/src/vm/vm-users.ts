import { join } from 'node:path';
import type { VmUsersOptions } from '@firecrew/vmm';
import type { NodeConfig } from '../agent/config.ts';

/** Folders of a node's home below which those of VMs are. */
const VM_ROOTS = ['turns', 'selftest'] as const;

/** Where VMs of a node get their users from; null where they run as the node agent. */
export function vmUsersOf({ owners, home }: Pick<NodeConfig, 'owners' | 'home'>): (VmUsersOptions & { vmRoots: string[] }) | null {
  return owners === null ? null : { ...owners, vmRoots: VM_ROOTS.map((name) => join(home, name)) };
}
