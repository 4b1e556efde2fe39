import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_SIZINGS, DRIVERS, type LiveVm, slotCommitments, sumCommitments, VM_OVERHEAD_MIB } from '../src/index.ts';

const vm = (slot: string, name: string, over: Partial<LiveVm> = {}): LiveVm => ({
  slot,
  name,
  demand: { driver: 'qemu', memoryMib: 1024, diskMib: 2048 },
  ...over,
});
const idsOf = (...vms: LiveVm[]) => slotCommitments(vms).map(({ vmId }) => vmId);

describe('the VMs of a node as claims', () => {
  it('lie in the slots of their attempts, one at a time, whatever they are called and however they are listed', () => {
    expect(idsOf(vm('t.1', '1a'), vm('u.1', '2v'))).toEqual(['t.1', 'u.1']);
    expect(idsOf(vm('t.1', '1v'), vm('t.1', '1a'))).toEqual(['t.1', 't.1/1v']);
    expect(idsOf(vm('t.1', '1a'), vm('t.10', '1a'))).toEqual(['t.1', 't.10']);
  });

  it('take what they were given and what the VMM takes itself; one that nobody knows takes the most there is', () => {
    expect(slotCommitments([vm('t.1', '1a')])).toEqual([{ vmId: 't.1', driver: 'qemu', memoryMib: 1024 + VM_OVERHEAD_MIB, diskMib: 2048 }]);
    const unknown = slotCommitments([vm('t.1', '1a', { demand: null })]);
    expect(unknown).toEqual([{ vmId: 't.1' }]);
    expect(sumCommitments(unknown, [], DEFAULT_SIZINGS).memoryMib).toBe(8192 + VM_OVERHEAD_MIB);
  });

  it('never promise less than there are VMs or reservations, and never charge a slot twice', () => {
    const live = fc.array(
      fc.record({
        slot: fc.constantFrom('a.1', 'b.1', 'c.2'),
        name: fc.constantFrom('1a', '1v', '1al', '2a'),
        demand: fc.option(
          fc.record({ driver: fc.constantFrom(...DRIVERS), memoryMib: fc.integer({ min: 1, max: 9000 }), diskMib: fc.constant(1) }),
        ),
      }),
      { maxLength: 8 },
    );
    const reserved = fc.uniqueArray(fc.constantFrom('a.1', 'b.1', 'd.1'));
    fc.assert(
      fc.property(live, reserved, (vms, slots) => {
        const unique = [...new Map(vms.map((item) => [`${item.slot}/${item.name}`, item])).values()];
        const { count } = sumCommitments(
          slotCommitments(unique),
          slots.map((vmId) => ({ vmId, memoryMib: 1, diskMib: 1 })),
          DEFAULT_SIZINGS,
        );
        const bare = slots.filter((slot) => !unique.some((item) => item.slot === slot)).length;
        expect(count).toBe(unique.length + bare);
      }),
    );
  });
});
