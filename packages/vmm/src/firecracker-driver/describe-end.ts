import { saysOutOfMemory } from '../machine/memory-on-console.ts';
import type { VmExit } from '../port/driver.ts';

/**
 * Why a Firecracker is gone.
 * - `stopped`: the guest was asked to end, and did.
 * - `guest_panic`, `guest_reset`: the guest reset by itself, which is no orderly end; the first when its console shows a panic.
 * - `guest_out_of_memory`: one of these, for want of memory by its console.
 * - `host_out_of_memory`: the memory limit of its group killed it. `vmm_killed`: another signal did.
 * - `vmm_*`: Firecracker gave up by itself, for the reason that its exit code names.
 * - `unknown`: it is no child of ours, and nothing says how it ended.
 */
export type FirecrackerEndCause =
  | 'stopped'
  | 'guest_panic'
  | 'guest_reset'
  | 'guest_out_of_memory'
  | 'host_out_of_memory'
  | 'vmm_killed'
  | 'unknown'
  | (typeof EXIT_CAUSES)[number][1];

/** Exit codes of Firecracker, with the cause that each names. */
export const EXIT_CAUSES = [
  [1, 'vmm_error'],
  [2, 'vmm_unexpected_error'],
  [148, 'vmm_forbidden_call'],
  [149, 'vmm_memory_missing'],
  [150, 'vmm_bad_memory_access'],
  [151, 'vmm_file_too_large'],
  [152, 'vmm_bad_log_level'],
  [153, 'vmm_bad_arguments'],
  [154, 'vmm_processor_time_used_up'],
  [155, 'vmm_broken_pipe'],
  [156, 'vmm_hung_up'],
  [157, 'vmm_illegal_instruction'],
] as const;

/** What is known of an end. Console lines are the guest's word: good for telling a person, and for nothing else. */
export interface FirecrackerEnd {
  /** Null for a process that is no child of ours. */
  readonly exit: Pick<VmExit, 'code' | 'signal'> | null;
  /** What its last metrics name. */
  readonly fault?: FirecrackerEndCause | undefined;
  /** The guest agent said that it would end. */
  readonly wasAsked: boolean;
  /** The kernel killed something in the VM's group for want of memory. */
  readonly outOfMemory: boolean;
  readonly console: readonly string[];
}

/** Tells the ends apart. The exit code is 0 for every reset of the guest, after a panic too. */
export function describeEnd({ exit, fault, wasAsked, outOfMemory, console }: FirecrackerEnd): FirecrackerEndCause {
  const named = EXIT_CAUSES.find(([code]) => code === exit?.code)?.[1];
  if (named !== undefined) return named;
  if (exit?.code === 0) return wasAsked ? 'stopped' : guestEnd(console);
  if (outOfMemory) return 'host_out_of_memory';
  if (exit !== null) return exit.signal === null ? 'vmm_unexpected_error' : 'vmm_killed';
  if (fault !== undefined) return fault;
  const end = guestEnd(console);
  // Nothing tells a reset of the guest from a kill here.
  return wasAsked ? 'stopped' : end === 'guest_reset' ? 'unknown' : end;
}

function guestEnd(console: readonly string[]): FirecrackerEndCause {
  if (saysOutOfMemory(console)) return 'guest_out_of_memory';
  if (console.some((line) => line.includes('Kernel panic - not syncing'))) return 'guest_panic';
  return console.some((line) => /^firecrew-init: \d+ ms agent stopped /.test(line)) ? 'stopped' : 'guest_reset';
}
