import { describe, expect, it } from 'vitest';
import {
  type Commitment,
  DEFAULT_SIZINGS,
  judgeNode,
  MAX_HEALTH_AGE_MS,
  type NodeRecord,
  type PlacementNeed,
  sumCommitments,
  UNFIT_REASONS,
  type UnfitCause,
  type UnfitNode,
} from '../src/index.ts';
import { GIB, NOW, node, vms } from './fleet.ts';

const need: PlacementNeed = { demand: {}, backends: [], driverFloor: 'qemu' };
const judge = (record: NodeRecord, asked: PlacementNeed = need) => judgeNode(record, asked, DEFAULT_SIZINGS, NOW);
const slots = (record: NodeRecord, asked: PlacementNeed = need) => {
  const verdict = judge(record, asked);
  return verdict.fit ? verdict.slots : verdict.reason;
};
const live = (count: number): NodeRecord['live'] => ({ status: 'known', vms: vms(count) });

describe('slots of a node', () => {
  it.each([
    { total: 61_440, used: 12_000, committed: 0, remembered: undefined, expected: 5 },
    { total: 61_440, used: 12_000, committed: 5, remembered: undefined, expected: 1 },
    { total: 31_757, used: 4314, committed: 0, remembered: undefined, expected: 2 },
    { total: 31_757, used: 6314, committed: 2, remembered: undefined, expected: 1 },
    { total: 31_757, used: 6314, committed: 2, remembered: 4314, expected: 'at_capacity' },
    { total: 61_440, used: 6144, committed: 0, remembered: undefined, expected: 6 },
    { total: 61_440, used: 7168, committed: 0, remembered: undefined, expected: 6 },
    { total: 31_744, used: 5120, committed: 0, remembered: undefined, expected: 2 },
  ])(
    'are $expected at $used of $total MiB with $committed committed and $remembered remembered',
    ({ total, used, committed, remembered, expected }) => {
      const record = node({
        live: live(committed),
        health: { memoryTotalMib: total, memoryUsedMib: used },
        ...(remembered === undefined ? {} : { rememberedBaselineMib: remembered }),
      });
      expect(slots(record)).toBe(expected);
    },
  );

  it('charge other work of the host in full', () => {
    const verdict = judge(node({ live: live(1), health: { memoryUsedMib: 28_672 }, rememberedBaselineMib: 4096 }));
    expect(verdict).toMatchObject({ usedMib: 28_672 });
  });

  it('charge a VM that has touched little of its claim for the whole claim', () => {
    expect(judge(node({ live: live(2), health: { memoryUsedMib: 4000 } }))).toMatchObject({ usedMib: 2 * 8320 + 2048 });
  });

  it('do not take a turn that has not booted for a part of what was observed', () => {
    const [claim] = vms(1);
    const verdict = judge(node({ reserved: claim === undefined ? [] : [claim], health: { memoryUsedMib: 20_000 } }));
    expect(verdict).toMatchObject({ usedMib: 20_000 + 8320 });
  });

  it('count a turn that is placed and live once, another placed one as well', () => {
    const both = vms(2);
    const committed = (record: NodeRecord) => judge(record, { ...need, demand: { memoryMib: 1 } });
    expect(committed(node({ live: { status: 'known', vms: both }, reserved: both.slice(0, 1) }))).toMatchObject({ committed: 2 });
    expect(committed(node({ live: { status: 'known', vms: both }, reserved: vms(1, 'other') }))).toMatchObject({ committed: 3 });
    expect(committed(node({ reserved: both }))).toMatchObject({ committed: 2 });
  });

  it('compare VM ids for equality: iteration 1 is not iteration 10', () => {
    const record = node({ live: { status: 'known', vms: [{ vmId: 'p-1' }] }, reserved: [{ vmId: 'p-10' }] });
    expect(judge(record)).toMatchObject({ committed: 2 });
  });

  it('take the default size for a VM whose claim nobody knows', () => {
    expect(judge(node({ live: { status: 'known', vms: [{ vmId: 'orphan' }] }, health: { memoryUsedMib: 0 } }))).toMatchObject({
      usedMib: 8320 + 2048,
    });
  });

  it('are counted per requested size', () => {
    expect(slots(node(), { ...need, demand: { memoryMib: 2048 } })).toBe(Math.floor((61_440 - 12_000 - 4096) / (2048 + 128)));
  });

  it('are bounded by disk: 32 GiB free admit one VM, one MiB less none, 44 GiB two', () => {
    const free = (diskFreeMib: number) => slots(node({ health: { diskFreeMib } }));
    expect([free(32 * GIB), free(32 * GIB - 1), free(44 * GIB), free(25 * GIB)]).toEqual([1, 'no_disk', 2, 'no_disk']);
    expect(judge(node({ health: { diskFreeMib: 25 * GIB } }))).toMatchObject({ detail: expect.stringContaining('25 GiB free') });
  });

  it('charge the disk that VMs may still fill', () => {
    const record = (diskUsedMib: number) =>
      node({ reserved: [{ vmId: 'x', diskMib: 12 * GIB, diskUsedMib }], health: { diskFreeMib: 40 * GIB } });
    expect(slots(record(0))).toBe('no_disk');
    expect(slots(record(8 * GIB))).toBe(1);
  });
});

describe('the process driver on a small laptop', () => {
  const process: PlacementNeed = { demand: {}, backends: [], driverFloor: 'process' };
  const laptop = (used: number, diskFreeMib = 10 * GIB) =>
    node({ drivers: ['process'], health: { memoryTotalMib: 4096, memoryUsedMib: used, diskFreeMib } });

  it('runs one turn at 4 GiB', () => {
    expect(slots(laptop(1600), process)).toBe(1);
    expect(slots(laptop(2560), process)).toBe(1);
    expect(slots(laptop(2561), process)).toBe('at_capacity');
  });

  it('needs 3 GiB of free disk', () => {
    expect(slots(laptop(1600, 3 * GIB), process)).toBe(1);
    expect(slots(laptop(1600, 3 * GIB - 1), process)).toBe('no_disk');
  });

  it('refuses a VM there for good', () => {
    expect(slots(node({ health: { memoryTotalMib: 4096, memoryUsedMib: 1000 } }))).toBe('never_fits');
  });
});

describe('a node of several drivers', () => {
  const asked: PlacementNeed = { demand: {}, backends: [], driverFloor: 'process', driver: 'process' };
  const mixed = (over: Parameters<typeof node>[0] = {}) =>
    node({ drivers: ['process', 'qemu'], ...over, health: { memoryTotalMib: 32 * GIB, memoryUsedMib: 0, ...over.health } });
  const three = { reserved: vms(3).map((vm) => ({ ...vm, driver: 'qemu' as const })) };

  it('keeps the reserve and the baseline of a host of VMs, whoever asks', () => {
    // 32,768 less 3 x 8,320 of VMs, 2,048 of the host and 4,096 of reserve: 1,664.
    expect(judge(mixed(three), asked)).toMatchObject({ fit: true, driver: 'process', slots: 1, usedMib: 3 * 8320 + 2048 });
    const one = { vmId: 'p', driver: 'process' as const, memoryMib: 1024, diskMib: 2048 };
    expect(judge(mixed({ reserved: [...three.reserved, one] }), asked)).toMatchObject({ reason: 'at_capacity' });
  });

  it.each<[string, NodeRecord, number | string]>([
    ['only processes', mixed({ drivers: ['process'], reserved: [] }), 31],
    ['a VM driver too', mixed(), 26],
    ['a VM left from a driver it had', mixed({ drivers: ['process'], reserved: three.reserved.slice(0, 1) }), 17],
    ['something of an unknown driver', mixed({ drivers: ['process'], reserved: [{ vmId: 'x', memoryMib: 1024, diskMib: 1 }] }), 25],
  ])('with %s has so many slots for processes', (_, record, expected) => {
    expect(slots(record, asked)).toBe(expected);
  });

  it('keeps the free disk of a host of VMs, whoever asks', () => {
    const free = (diskFreeMib: number) => slots(mixed({ health: { diskFreeMib } }), asked);
    expect([free(22 * GIB), free(22 * GIB - 1)]).toEqual([1, 'no_disk']);
  });

  it.each<[string, Commitment, number, number]>([
    ['a VM', { vmId: 'x', driver: 'qemu' }, 8320, 12_288],
    ['a process', { vmId: 'x', driver: 'process' }, 1024, 2048],
    ['an unknown driver', { vmId: 'x' }, 8320, 12_288],
  ])('charges %s of unknown size its own default, whoever asks', (_, commitment, memoryMib, diskMib) => {
    for (const driver of ['process', 'qemu'] as const) {
      expect(judge(mixed({ reserved: [commitment] }), { ...asked, driver })).toMatchObject({ usedMib: memoryMib + 2048 });
    }
    expect(sumCommitments([], [commitment], DEFAULT_SIZINGS)).toMatchObject({ memoryMib, diskMib });
  });

  it('takes driver and size of a VM from the set that knows them', () => {
    const sum = (live: Commitment, reserved: Commitment) => sumCommitments([live], [reserved], DEFAULT_SIZINGS).memoryMib;
    expect(sum({ vmId: 'x' }, { vmId: 'x', driver: 'process' })).toBe(1024);
    expect(sum({ vmId: 'x' }, { vmId: 'x', memoryMib: 640 })).toBe(640);
    expect(sum({ vmId: 'x', memoryMib: 2000 }, { vmId: 'x', memoryMib: 640 })).toBe(2000);
    expect(sum({ vmId: 'x', driver: 'qemu' }, { vmId: 'x', driver: 'process' })).toBe(8320);
  });

  it('never says for good that a turn does not fit because of what will end', () => {
    const small = mixed({ drivers: ['process'], reserved: three.reserved.slice(0, 1), health: { memoryTotalMib: 6144 } });
    expect(judge(small, asked)).toMatchObject({ reason: 'at_capacity' });
    expect(judge({ ...small, drivers: ['process', 'qemu'] }, asked)).toMatchObject({ reason: 'never_fits' });
  });
});

describe('the numbers of a reason', () => {
  const unreadable = { status: 'unknown', error: 'timed out' } as const;
  const { health: _, ...unread } = node();
  const causes: [NodeRecord, UnfitCause][] = [
    [node({ draining: true }), { reason: 'draining' }],
    [node({ connected: false }), { reason: 'not_connected' }],
    [node({ drivers: [] }), { reason: 'not_capable' }],
    [unread, { reason: 'no_recent_health' }],
    [node({ health: { atMs: NOW - 31_000 } }), { reason: 'no_recent_health', ageMs: 31_000 }],
    [node({ health: { atMs: NOW - 5, memoryTotalMib: 0 } }), { reason: 'no_recent_health', ageMs: 5 }],
    [node({ live: unreadable }), { reason: 'capacity_unknown', error: 'timed out' }],
    [
      node({ reserved: [{ vmId: 'x', memoryMib: 1, diskMib: 100 }], health: { diskFreeMib: 25 * GIB } }),
      { reason: 'no_disk', freeMib: 25 * GIB, promisedMib: 100 },
    ],
    [
      node({ reserved: vms(2), health: { memoryUsedMib: 50_000 } }),
      { reason: 'at_capacity', committedMib: 2 * 8320, usedMib: 50_000 + 2 * 8320, totalMib: 61_440 },
    ],
    [node({ health: { memoryTotalMib: 8192 } }), { reason: 'never_fits', memoryMib: 8320, diskMib: 12_288, totalMib: 8192 }],
  ];

  it.each(causes.map(([record, cause]) => ({ ...cause, record, cause })))('$reason, all of them', ({ record, cause }) => {
    const { fit, id, name, capable, lacksRoute, awaitsImage, detail, ...rest } = judge(record) as UnfitNode;
    expect([fit, id, name, typeof capable, lacksRoute, awaitsImage, typeof detail]).toEqual([
      false,
      'nod_a',
      'alpha',
      'boolean',
      false,
      false,
      'string',
    ]);
    expect(rest).toEqual(cause);
  });

  it('are shown here for every reason', () => {
    expect(new Set(causes.map(([, { reason }]) => reason))).toEqual(new Set(UNFIT_REASONS));
  });
});

describe('reasons to leave a node out', () => {
  const stale = { atMs: NOW - MAX_HEALTH_AGE_MS - 1 };
  it.each<[string, NodeRecord, string]>([
    ['draining beats everything else', node({ draining: true, connected: false, health: { ...stale, diskFreeMib: 0 } }), 'draining'],
    ['not connected', node({ connected: false }), 'not_connected'],
    ['health too old', node({ health: stale }), 'no_recent_health'],
    ['health from the future', node({ health: { atMs: NOW + 1 } }), 'no_recent_health'],
    ['a total of 0', node({ health: { memoryTotalMib: 0 } }), 'no_recent_health'],
    ['a total that is no number', node({ health: { memoryTotalMib: Number.NaN } }), 'no_recent_health'],
    ['VMs not known', node({ live: { status: 'unknown', error: 'timed out' } }), 'capacity_unknown'],
    ['disk before memory', node({ health: { diskFreeMib: 0, memoryUsedMib: 61_000 } }), 'no_disk'],
    ['memory gone', node({ health: { memoryUsedMib: 61_000 } }), 'at_capacity'],
    ['more than the empty node', node({ health: { memoryTotalMib: 8192 } }), 'never_fits'],
    ['no driver', node({ drivers: [] }), 'not_capable'],
    ['only a driver below the floor', node({ drivers: ['process'] }), 'not_capable'],
  ])('%s', (_, record, reason) => {
    expect(judge(record)).toMatchObject({ fit: false, reason });
  });

  it('health of exactly the longest age still counts', () => {
    expect(judge(node({ health: { atMs: NOW - MAX_HEALTH_AGE_MS } })).fit).toBe(true);
  });

  it('a missing reading and unknown free disk are missing health, not an empty disk', () => {
    const { health: _, ...unread } = node();
    expect(judge(unread)).toMatchObject({ reason: 'no_recent_health' });
    const { health } = node();
    const { diskFreeMib: __, ...blind } = health ?? { atMs: 0, memoryTotalMib: 0, memoryUsedMib: 0 };
    expect(judge({ ...node(), health: blind })).toMatchObject({ reason: 'no_recent_health', detail: 'free disk unknown' });
  });

  it('one missing image of several is not capable, and is named', () => {
    const verdict = judge(node({ images: { firecracker: ['claude'] } }), { ...need, backends: ['claude', 'codex'] });
    expect(verdict).toMatchObject({ reason: 'not_capable', detail: 'no image for codex' });
  });

  it('stale metrics leave a node eligible and only change its rank', () => {
    const fresh = judge(node({ metrics: { atMs: NOW, cpuPercent: 90, memoryPercent: 10 } }));
    const old = judge(node({ metrics: { atMs: NOW - 60_001, cpuPercent: 90, memoryPercent: 10 } }));
    expect(fresh).toMatchObject({ fit: true, headroomPercent: 10 });
    expect(old).toMatchObject({ fit: true, headroomPercent: 80.5 });
  });

  it('the strongest driver of the node that is allowed is used, or the one asked for', () => {
    const record = node({ drivers: ['process', 'qemu', 'firecracker'] });
    expect(judge(record)).toMatchObject({ driver: 'firecracker' });
    expect(judge(record, { ...need, driver: 'qemu' })).toMatchObject({ driver: 'qemu' });
    expect(judge(record, { ...need, driver: 'process' })).toMatchObject({ reason: 'not_capable' });
  });

  it('a stronger driver that lacks the image is passed over for one that has it, unless it was asked for', () => {
    const record = node({ drivers: ['qemu', 'firecracker'], images: { qemu: ['claude'] } });
    const wanted = { ...need, backends: ['claude'] };
    expect(judge(record, wanted)).toMatchObject({ fit: true, driver: 'qemu' });
    expect(judge(record, { ...wanted, driver: 'firecracker' })).toMatchObject({ fit: false, detail: 'no image for claude' });
  });
});
