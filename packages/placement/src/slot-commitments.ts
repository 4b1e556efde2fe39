import type { Commitment } from './node-record.ts';
import { DEFAULT_SIZINGS, type Driver, type Sizings, sizeDemand } from './size-demand.ts';

/** A VM that a node says is on it. */
export interface LiveVm {
  /** Its attempt, as the reservation of that is called (`turnId.attempt`). */
  readonly slot: string;
  /** Its own within the attempt. */
  readonly name: string;
  /** Memory of the guest and disk, in MiB, without what the VMM itself takes; null where nobody knows. */
  readonly demand: { readonly driver: Driver; readonly memoryMib: number; readonly diskMib: number } | null;
}

/**
 * What the VMs of a node claim. An attempt has one VM at a time, be it for its agent, for a check, or for reading the disk of one that died,
 * and that lies in the slot which was reserved for it; each further one at the same time claims for itself.
 */
export function slotCommitments(vms: readonly LiveVm[], sizings: Sizings = DEFAULT_SIZINGS): Commitment[] {
  const taken = new Set<string>();
  const inOrder = [...vms].sort((a, b) => compare(a.slot, b.slot) || compare(a.name, b.name));
  return inOrder.map(({ slot, name, demand }) => {
    const vmId = taken.has(slot) ? `${slot}/${name}` : slot;
    taken.add(slot);
    if (demand === null) return { vmId };
    const { driver, memoryMib, diskMib } = demand;
    return { vmId, driver, ...sizeDemand({ memoryMib, diskMib }, sizings[driver]) };
  });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
