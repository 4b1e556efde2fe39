import { saysOutOfMemory } from '../machine/memory-on-console.ts';
import type { VmExit } from '../port/driver.ts';
import type { QmpEvent } from './qmp-client.ts';

/**
 * Why a VM is gone.
 * - `stopped`: we ended it.
 * - `guest_panic`, `guest_poweroff`, `guest_reset`: the guest ended itself; guest-init's way out is the reset.
 * - `guest_out_of_memory`: one of these, for want of memory by its console.
 * - `vmm_failed`: QEMU gave up by itself; `vmm_killed`: a signal ended it.
 * - `host_out_of_memory`: the memory limit of its group ended it.
 */
export type VmEndCause =
  | 'stopped'
  | 'guest_panic'
  | 'guest_poweroff'
  | 'guest_reset'
  | 'guest_out_of_memory'
  | 'host_out_of_memory'
  | 'vmm_killed'
  | 'vmm_failed';

const SHUTDOWN_CAUSES: ReadonlyMap<string, VmEndCause> = new Map([
  ['guest-panic', 'guest_panic'],
  ['guest-shutdown', 'guest_poweroff'],
  ['guest-reset', 'guest_reset'],
  ['host-qmp-quit', 'stopped'],
]);

/** Tells the ends apart: the exit status of QEMU is 0 for nearly all of them, so the events decide. */
export function describeEnd(
  events: readonly QmpEvent[],
  exit: Pick<VmExit, 'code' | 'signal'>,
  outOfMemory: boolean,
  console: readonly string[],
): VmEndCause {
  const end = eventEnd(events);
  if (end === 'guest_panic' || end === 'guest_reset') {
    if (saysOutOfMemory(console)) return 'guest_out_of_memory';
    // Before the guest has the driver of QEMU's panic device, a panic is a reset like any other.
    return console.some((line) => line.includes('Kernel panic - not syncing')) ? 'guest_panic' : end;
  }
  if (end !== undefined) return end;
  if (outOfMemory) return 'host_out_of_memory';
  return exit.signal === null ? 'vmm_failed' : 'vmm_killed';
}

function eventEnd(events: readonly QmpEvent[]): VmEndCause | undefined {
  if (events.some((event) => event.name === 'GUEST_PANICKED')) return 'guest_panic';
  const shutdown = events.find((event) => event.name === 'SHUTDOWN');
  return SHUTDOWN_CAUSES.get(shutdown?.reason ?? '');
}
