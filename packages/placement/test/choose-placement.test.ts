import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  choosePlacement,
  type NodeRecord,
  PLACEMENT_ERROR_CODES,
  type PlacementRequest,
  surveyNodes,
  UNFIT_REASONS,
} from '../src/index.ts';
import { NOW, node, request, vms } from './fleet.ts';

const full = node({ id: 'f', name: 'full', health: { memoryUsedMib: 60_000 } });
const unreadable = node({ id: 'u', name: 'unreadable', live: { status: 'unknown', error: 'timed out after 5 s' } });

describe('the choice of a node', () => {
  it('takes most free slots, then headroom, then id, whatever the order of the list', () => {
    const roomy = node({ id: 'n3', name: 'roomy', health: { memoryUsedMib: 2048 } });
    const calm = node({ id: 'n2', name: 'calm', metrics: { atMs: NOW, cpuPercent: 1, memoryPercent: 1 } });
    const busy = node({ id: 'n0', name: 'busy', metrics: { atMs: NOW, cpuPercent: 99, memoryPercent: 1 } });
    const twin = node({ id: 'n1', name: 'twin', metrics: { atMs: NOW, cpuPercent: 1, memoryPercent: 1 } });
    const fleet = [roomy, calm, busy, twin];
    for (const nodes of [fleet, fleet.toReversed()]) {
      expect(surveyNodes(request(nodes)).ranked.map((each) => each.id)).toEqual(['n3', 'n1', 'n2', 'n0']);
      expect(choosePlacement(request(nodes))).toMatchObject({ verdict: 'chosen', nodeId: 'n3' });
    }
  });

  it('prefers the node of the previous phase while it fits', () => {
    const nodes = [node({ id: 'a' }), node({ id: 'b', health: { memoryUsedMib: 30_000 } })];
    expect(choosePlacement(request(nodes, { preferred: 'b' }))).toMatchObject({ nodeId: 'b', preference: { status: 'used' } });
  });

  it('goes on without the preferred node when it does not fit or is gone, and says why', () => {
    expect(choosePlacement(request([full, node({ id: 'a' })], { preferred: 'f' }))).toMatchObject({
      nodeId: 'a',
      preference: { status: 'passed_over', detail: expect.stringContaining('full: at capacity') },
    });
    expect(choosePlacement(request([node({ id: 'a' })], { preferred: 'gone' }))).toMatchObject({
      nodeId: 'a',
      preference: { status: 'passed_over' },
    });
  });

  it('gives the claim to reserve with the VMM overhead in it', () => {
    expect(choosePlacement(request([node()]))).toMatchObject({ claim: { memoryMib: 8320, diskMib: 12_288 }, driver: 'firecracker' });
  });

  it('never returns a node below the floor, whatever is asked for', () => {
    const laptop = node({ drivers: ['process'] });
    expect(choosePlacement(request([laptop], { driverFloor: 'firecracker', driver: 'process' })).verdict).toBe('no_capable_node');
  });
});

describe('the answer without a node', () => {
  it('is permanent without a capable node, and says what one node must have', () => {
    const nodes = [node({ images: { firecracker: ['a'] } }), node({ id: 'b', images: { firecracker: ['b'] } })];
    const answer = choosePlacement(request(nodes, { backends: ['a', 'b'] }));
    expect(answer).toMatchObject({
      verdict: 'no_capable_node',
      transient: false,
      backends: ['a', 'b'],
      howToFix: expect.stringContaining('a, b'),
    });
    expect(choosePlacement(request([]))).toMatchObject({ verdict: 'no_capable_node', howToFix: expect.stringContaining('node join') });
  });

  it.each<[string, Partial<NodeRecord>, string]>([
    ['draining', { draining: true }, 'fleet_at_capacity'],
    ['offline', { connected: false }, 'fleet_unreadable'],
  ])('is transient when the only capable nodes are %s', (_, over, verdict) => {
    const nodes = [node({ images: { firecracker: ['a'] }, ...over }), node({ id: 'b' })];
    expect(choosePlacement(request(nodes, { backends: ['a'] }))).toMatchObject({ verdict, transient: true });
  });

  describe('to a turn that needs a model route', () => {
    const both = { backends: ['command'], modelRoute: true } as const;
    const held = { images: { qemu: ['command'], process: ['command'] }, drivers: ['qemu'] as const };
    const routed = node({ id: 'r', name: 'routed', ...held, modelRoutes: { qemu: ['command'] } });

    it('is a node that has one, however much room others have', () => {
      const roomy = node({ id: 'a', ...held });
      const busy = { ...routed, reserved: vms(4) };
      expect(choosePlacement(request([roomy, busy], both))).toMatchObject({ verdict: 'chosen', nodeId: 'r' });
      expect(choosePlacement(request([roomy, busy], { ...both, modelRoute: false }))).toMatchObject({ verdict: 'chosen', nodeId: 'a' });
    });

    it.each<[string, Partial<NodeRecord>]>([
      ['never said', {}],
      ['has none', { modelRoutes: {} }],
      ['has one for another backend', { modelRoutes: { qemu: ['commander', 'comman', ''] } }],
      ['has one under a driver that the turn does not get', { modelRoutes: { process: ['command'] } }],
      ['is draining, and has none', { draining: true }],
    ])('is to wait where a node that could run it %s', (_, over) => {
      const answer = choosePlacement(request([node({ ...held, ...over })], both));
      expect(answer).toMatchObject({ verdict: 'no_node_with_model_route', transient: true, message: expect.stringContaining('command') });
    });

    it('is as ever where a node with a route is full, and where no node could run it at all', () => {
      const fullRouted = { ...routed, reserved: vms(40) };
      expect(choosePlacement(request([fullRouted, node({ id: 'a', ...held })], both)).verdict).toBe('fleet_at_capacity');
      expect(choosePlacement(request([node({ drivers: ['process'] })], both)).verdict).toBe('no_capable_node');
      expect(choosePlacement(request([], both)).verdict).toBe('no_capable_node');
    });
  });

  describe('to a turn whose image a node is getting', () => {
    const need = { backends: ['a'] } as const;
    const coming = (over: Partial<NodeRecord> = {}) => node({ images: {}, comingImages: { firecracker: ['a'] }, ...over });

    it.each<[string, Partial<NodeRecord>, Partial<PlacementRequest>]>([
      ['it', {}, {}],
      ['it, and the driver with it', { drivers: ['process'] }, {}],
      ['one of two', { images: { firecracker: ['b'] } }, { backends: ['a', 'b'] }],
    ])('is to wait where that is %s', (_, over, more) => {
      const answer = choosePlacement(request([coming(over), node({ id: 'z', images: {} })], { ...need, ...more }));
      expect(answer).toMatchObject({ verdict: 'image_on_its_way', transient: true, message: expect.stringContaining('a') });
    });

    it.each<[string, Partial<NodeRecord>, Partial<PlacementRequest>]>([
      ['another', { comingImages: { firecracker: ['b'] } }, {}],
      ['one of two, and the other is nowhere', {}, { backends: ['a', 'c'] }],
      ['for a driver that the turn may not have', { comingImages: { process: ['a'] } }, { driverFloor: 'qemu' }],
      ['for another driver than it asks for', {}, { driver: 'qemu' }],
      ['none', { comingImages: {} }, {}],
    ])('is none where that is %s', (_, over, more) => {
      expect(choosePlacement(request([coming(over)], { ...need, ...more })).verdict).toBe('no_capable_node');
    });

    it('is a node that has it, be it full', () => {
      const held = node({ id: 'h', images: { firecracker: ['a'] } });
      expect(choosePlacement(request([coming(), held], need))).toMatchObject({ verdict: 'chosen', nodeId: 'h' });
      expect(choosePlacement(request([coming(), { ...held, reserved: vms(40) }], need)).verdict).toBe('fleet_at_capacity');
    });
  });

  it('is permanent when the demand exceeds every capable empty node', () => {
    expect(choosePlacement(request([node(), full], { demand: { memoryMib: 100_000 } }))).toMatchObject({
      verdict: 'never_fits',
      transient: false,
    });
  });

  it('is not permanent while a capable node could not be read', () => {
    const { health: _, ...unread } = node({ id: 'x' });
    expect(choosePlacement(request([node(), unread], { demand: { memoryMib: 100_000 } })).verdict).toBe('fleet_unreadable');
  });

  it('says of a full fleet how long one waits, with a line for each node', () => {
    const answer = choosePlacement(request([full]));
    expect(answer).toMatchObject({
      verdict: 'fleet_at_capacity',
      transient: true,
      full: 1,
      unreadable: 0,
      message: expect.stringContaining('60 min'),
    });
    expect(answer).toMatchObject({
      report: [expect.stringMatching(/^full: unfit, at capacity \(0 committed, 60000 of 61440 MiB used\)$/)],
    });
  });

  it('never says of an unreadable fleet that it is at capacity', () => {
    const answer = choosePlacement(request([unreadable]));
    expect(answer).toMatchObject({ verdict: 'fleet_unreadable', transient: true, message: expect.stringContaining('not a full fleet') });
    expect(JSON.stringify(answer)).not.toMatch(/at capacity/i);
  });

  it('counts full and unreadable nodes apart', () => {
    expect(choosePlacement(request([full, unreadable]))).toMatchObject({ verdict: 'fleet_at_capacity', full: 1, unreadable: 1 });
  });
});

describe('the survey', () => {
  it('lists fit and unfit nodes apart with the sum of slots, by name and not by id', () => {
    const survey = surveyNodes(request([node({ live: { status: 'known', vms: vms(1) } }), full, unreadable]));
    expect(survey.totalFreeSlots).toBe(survey.ranked[0]?.slots);
    expect(survey.unfit.map((each) => [each.name, each.reason])).toEqual([
      ['full', 'at_capacity'],
      ['unreadable', 'capacity_unknown'],
    ]);
  });

  it('does not depend on the order of the nodes', () => {
    const fleet = Array.from({ length: 8 }, (_, at) =>
      node({ id: `n${at}`, name: `n${at}`, health: { memoryUsedMib: 10_000 + (at % 3) * 9000 } }),
    );
    fc.assert(
      fc.property(fc.shuffledSubarray(fleet, { minLength: fleet.length }), (shuffled) => {
        expect(surveyNodes(request(shuffled))).toEqual(surveyNodes(request(fleet)));
      }),
    );
  });
});

describe('what others can see', () => {
  it('is fixed: reasons and codes', () => {
    expect(UNFIT_REASONS).toEqual([
      'draining',
      'not_connected',
      'no_recent_health',
      'capacity_unknown',
      'no_disk',
      'at_capacity',
      'never_fits',
      'not_capable',
    ]);
    expect(PLACEMENT_ERROR_CODES).toEqual(['demand_invalid']);
  });
});
