import type { Outcome } from './outcome-table.ts';

/** A disk with less room than this after a command counts as full, in bytes: what is left of one that was filled is less than a write of a program. */
export const FULL_DISK_ROOM_BYTES = 1024 * 1024;

/** What a command of a guest can have used up. */
export type Exhaustion = 'guest_out_of_memory' | 'guest_disk_full';

/** What is known of one command that has ended; the numbers are the guest's word. */
export interface CommandReport {
  /** It did not exit with 0. */
  readonly failed: boolean;
  /** The guest has a kernel of its own, so that what that kernel killed was the guest's. */
  readonly ownKernel: boolean;
  /** Processes that the kernel killed for want of memory while it ran; undefined where nobody counted. */
  readonly memoryKills: number | undefined;
  /** Room at its end on the fullest of the disks it could write to, in bytes; undefined where nobody looked. */
  readonly diskRoomBytes: number | undefined;
}

/** What there was too little of, worst first. A command that succeeded all the same has used up nothing that matters. */
export function findShortages({ ownKernel, memoryKills = 0, diskRoomBytes }: CommandReport): readonly Exhaustion[] {
  const found: Exhaustion[] = [];
  if (ownKernel && memoryKills > 0) found.push('guest_out_of_memory');
  if (diskRoomBytes !== undefined && diskRoomBytes < FULL_DISK_ROOM_BYTES) found.push('guest_disk_full');
  return found;
}

/** What a failed command failed for; undefined where that is not known. */
export function judgeExhaustion(report: CommandReport): Exhaustion | undefined {
  return report.failed ? findShortages(report)[0] : undefined;
}

/** What is known of the end of an attempt beside its outcome. */
export interface CauseFacts {
  readonly outcome: Outcome;
  /** Code of what kept a VM from coming up. */
  readonly boot?: string | undefined;
  /** Why a VM ended by itself, as its driver names it. */
  readonly vmEnd?: string | undefined;
  /** What the commands of the last round failed for. */
  readonly exhausted?: Exhaustion | undefined;
}

/**
 * The cause behind an outcome, as a code; undefined where the outcome says all. It names and decides nothing: what follows is the
 * outcome's ({@link ruleOf}).
 */
export function decideCause({ outcome, boot, vmEnd, exhausted }: CauseFacts): string | undefined {
  switch (outcome.kind) {
    case 'failed_to_start':
      return outcome.reason === 'boot_failed' ? boot : undefined;
    case 'lost':
      return outcome.reason === 'guest_lost' ? (vmEnd ?? exhausted) : undefined;
    case 'gate_capped':
    case 'gate_unrunnable':
    case 'setup_failed':
    case 'uncollected':
    case 'timed_out':
      return exhausted;
    case 'completed':
    case 'budget_exceeded':
    case 'refused':
    case 'spool_full':
    case 'cancelled':
      return undefined;
  }
}
