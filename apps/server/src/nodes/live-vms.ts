import { type LiveVms, slotCommitments } from '@firecrew/placement';
import type { NodeVm, NodeVms } from '@firecrew/protocol';

/** The slot of an attempt, as its reservation is called too. */
export function slotOf({ turnId, attempt }: { readonly turnId: string; readonly attempt: number }): string {
  return `${turnId}.${attempt}`;
}

/** What is on a node as placement charges it. Of a node that does not say, its open attempts are all that is known. */
export function liveVmsOf(vms: NodeVms | null): LiveVms {
  if (vms === null) return { status: 'known', vms: [] };
  if (vms.status === 'unknown') return vms;
  return { status: 'known', vms: slotCommitments(vms.vms.map((vm) => ({ ...vm, slot: slotOf(vm) }))) };
}

/** The list without an attempt whose end the node has reported after it: that comes when nothing of its VMs is left. */
export function withoutSlot(vms: NodeVms | null, slot: string): NodeVms | null {
  return vms?.status === 'known' ? { status: 'known', vms: vms.vms.filter((vm) => slotOf(vm) !== slot) } : vms;
}

/** Whether a newer list leaves room that an older one did not. */
export function hasRoomMore(older: NodeVms | null, newer: NodeVms | null): boolean {
  if (newer?.status !== 'known') return false;
  if (older?.status !== 'known') return older?.status === 'unknown';
  const now = new Set(newer.vms.map(idOf));
  return older.vms.some((vm) => !now.has(idOf(vm)));
}

function idOf(vm: NodeVm): string {
  return `${slotOf(vm)}/${vm.name}`;
}
