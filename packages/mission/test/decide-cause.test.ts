import { describe, expect, it } from 'vitest';
import {
  type CommandReport,
  decideCause,
  type Exhaustion,
  FULL_DISK_ROOM_BYTES,
  findShortages,
  judgeExhaustion,
  type Outcome,
} from '../src/index.ts';

const REPORT: CommandReport = { failed: true, ownKernel: true, memoryKills: 0, diskRoomBytes: 1024 ** 3 };

describe('what a command used up', () => {
  it.each<[string, Partial<CommandReport>, Exhaustion[], Exhaustion | undefined]>([
    ['nothing', {}, [], undefined],
    ['nothing that anybody looked at', { memoryKills: undefined, diskRoomBytes: undefined }, [], undefined],
    ['memory', { memoryKills: 1 }, ['guest_out_of_memory'], 'guest_out_of_memory'],
    ['memory of a kernel that others use too', { memoryKills: 1, ownKernel: false }, [], undefined],
    ['the disk', { diskRoomBytes: FULL_DISK_ROOM_BYTES - 1 }, ['guest_disk_full'], 'guest_disk_full'],
    ['nearly the disk', { diskRoomBytes: FULL_DISK_ROOM_BYTES }, [], undefined],
    ['both', { memoryKills: 3, diskRoomBytes: 0 }, ['guest_out_of_memory', 'guest_disk_full'], 'guest_out_of_memory'],
    ['the disk, without failing', { diskRoomBytes: 0, failed: false }, ['guest_disk_full'], undefined],
  ])('is %s', (_what, report, shortages, reason) => {
    expect(findShortages({ ...REPORT, ...report })).toEqual(shortages);
    expect(judgeExhaustion({ ...REPORT, ...report })).toBe(reason);
  });

  it('has a pinned bound for a full disk', () => {
    expect(FULL_DISK_ROOM_BYTES).toBe(1_048_576);
  });
});

describe('the cause behind an outcome', () => {
  const facts = { boot: 'vm_boot_hung', vmEnd: 'guest_panic', exhausted: 'guest_disk_full' } as const;
  it.each<[Outcome, string | undefined]>([
    [{ kind: 'failed_to_start', reason: 'boot_failed' }, 'vm_boot_hung'],
    [{ kind: 'failed_to_start', reason: 'inject_failed' }, undefined],
    [{ kind: 'failed_to_start', reason: 'no_capable_node' }, undefined],
    [{ kind: 'lost', reason: 'guest_lost' }, 'guest_panic'],
    [{ kind: 'lost', reason: 'lease_lost' }, undefined],
    [{ kind: 'lost', reason: 'shim_died' }, undefined],
    [{ kind: 'gate_capped' }, 'guest_disk_full'],
    [{ kind: 'gate_unrunnable' }, 'guest_disk_full'],
    [{ kind: 'setup_failed' }, 'guest_disk_full'],
    [{ kind: 'uncollected' }, 'guest_disk_full'],
    [{ kind: 'timed_out' }, 'guest_disk_full'],
    [{ kind: 'completed' }, undefined],
    [{ kind: 'budget_exceeded' }, undefined],
    [{ kind: 'refused', reason: 'egress_down' }, undefined],
    [{ kind: 'spool_full' }, undefined],
    [{ kind: 'cancelled' }, undefined],
  ])('%j: %s', (outcome, cause) => {
    expect(decideCause({ outcome, ...facts })).toBe(cause);
    expect(decideCause({ outcome })).toBeUndefined();
  });

  it('of a guest that was lost without a word is what its commands had used up', () => {
    const outcome = { kind: 'lost', reason: 'guest_lost' } as const;
    expect(decideCause({ outcome, exhausted: 'guest_out_of_memory' })).toBe('guest_out_of_memory');
  });
});
