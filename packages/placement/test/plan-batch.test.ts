import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BatchTurn, choosePlacement, DEFAULT_SIZINGS, type Driver, type NodeRecord, planBatch, sumCommitments } from '../src/index.ts';
import { GIB, NOW, node, request, vms } from './fleet.ts';

const turn = (vmId: string, over: Partial<BatchTurn> = {}): BatchTurn => ({ vmId, demand: {}, backends: [], driverFloor: 'qemu', ...over });

const someNode = fc
  .record({
    driver: fc.constantFrom<Driver>('process', 'qemu', 'firecracker'),
    total: fc.integer({ min: 1024, max: 262_144 }),
    usedPart: fc.double({ min: 0, max: 1, noNaN: true }),
    disk: fc.integer({ min: 0, max: 400 * GIB }),
    live: fc.integer({ min: 0, max: 4 }),
    remembered: fc.option(fc.integer({ min: 0, max: 8192 }), { nil: undefined }),
  })
  .map(
    ({ driver, total, usedPart, disk, live, remembered }) =>
      (id: string): NodeRecord =>
        node({
          id,
          name: id,
          drivers: [driver],
          live: { status: 'known', vms: vms(live, `${id}-live`) },
          health: { memoryTotalMib: total, memoryUsedMib: Math.floor(total * usedPart), diskFreeMib: disk },
          ...(remembered === undefined ? {} : { rememberedBaselineMib: remembered }),
        }),
  );
const someTurn = fc.record({
  memoryMib: fc.option(fc.integer({ min: 128, max: 32_768 }), { nil: undefined }),
  diskMib: fc.option(fc.integer({ min: 128, max: 65_536 }), { nil: undefined }),
  driverFloor: fc.constantFrom<Driver>('process', 'qemu', 'firecracker'),
});

describe('a batch of turns', () => {
  it('places each on what the ones before it left', () => {
    const nodes = [node({ id: 'a', health: { memoryTotalMib: 31_757, memoryUsedMib: 4314 }, rememberedBaselineMib: 4314 })];
    const placed = planBatch({ turns: ['1', '2', '3'].map((id) => turn(id)), nodes, nowMs: NOW });
    expect(placed.map((each) => each.placement.verdict)).toEqual(['chosen', 'chosen', 'fleet_at_capacity']);
  });

  it('charges each turn of it to the driver that was chosen', () => {
    const laptop = node({ drivers: ['process'], health: { memoryTotalMib: 512 + 256 + 3 * 1024, memoryUsedMib: 0 } });
    const turns = ['1', '2', '3', '4'].map((id) => turn(id, { driverFloor: 'process' }));
    const placed = planBatch({ turns, nodes: [laptop], nowMs: NOW });
    expect(placed.map((each) => each.placement.verdict)).toEqual(['chosen', 'chosen', 'chosen', 'fleet_at_capacity']);
  });

  it('gives a turn that needs a model route none of the answers of one that does not', () => {
    const nodes = [node()];
    const turns = [turn('1'), turn('2', { modelRoute: true, backends: [] }), turn('3', { modelRoute: true, backends: ['command'] })];
    const routed = [
      node({ id: 'a', images: { firecracker: ['command'] } }),
      node({ id: 'b', images: { firecracker: ['command'] }, modelRoutes: { firecracker: ['command'] } }),
    ];
    const verdicts = (of: readonly NodeRecord[]) => planBatch({ turns, nodes: of, nowMs: NOW }).map(({ placement }) => placement);
    expect(verdicts(nodes).map(({ verdict }) => verdict)).toEqual(['chosen', 'chosen', 'no_capable_node']);
    expect(verdicts(routed)).toMatchObject([{ nodeId: 'a' }, {}, { verdict: 'chosen', nodeId: 'b' }]);
    const asked = (modelRoute: boolean) => turn('x', { modelRoute, backends: ['command'] });
    const one = [node({ images: { firecracker: ['command'] } })];
    expect(planBatch({ turns: [asked(false), asked(true)], nodes: one, nowMs: NOW }).map(({ placement }) => placement.verdict)).toEqual([
      'chosen',
      'no_node_with_model_route',
    ]);
  });

  it('spreads over equal nodes', () => {
    const nodes = ['a', 'b', 'c'].map((id) => node({ id, name: id }));
    const placed = planBatch({ turns: ['1', '2', '3'].map((id) => turn(id)), nodes, nowMs: NOW });
    expect(placed.map((each) => (each.placement.verdict === 'chosen' ? each.placement.nodeId : ''))).toEqual(['a', 'b', 'c']);
  });

  it('leaves the records it was given unchanged', () => {
    const nodes = [node()];
    planBatch({ turns: [turn('1')], nodes, nowMs: NOW });
    expect(nodes[0]?.reserved).toEqual([]);
  });

  it('decides as one placement after another would, and tells a turn that waits the same', () => {
    const somePreferred = fc.option(fc.constantFrom('n0', 'n3', 'nowhere'), { nil: undefined });
    const demands = fc.array(fc.tuple(someTurn, somePreferred), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(someNode, { maxLength: 5 }), demands, (makers, wanted) => {
        let nodes = makers.map((make, at) => make(`n${at}`));
        const turns = wanted.map(([demand, preferred], at) =>
          turn(`t${at}`, { ...asTurn(demand), ...(preferred === undefined ? {} : { preferred }) }),
        );
        const batch = planBatch({ turns, nodes, nowMs: NOW });
        for (const [at, each] of turns.entries()) {
          const single = choosePlacement(request(nodes, { ...each }));
          const placed = batch[at]?.placement;
          expect(placed?.verdict).toBe(single.verdict);
          expect({ ...placed, report: [] }).toEqual({ ...single, report: [] });
          if (single.verdict !== 'chosen') expect(placed?.report).toEqual(single.report);
          if (single.verdict !== 'chosen' || placed?.verdict !== 'chosen') continue;
          expect(placed.nodeId).toBe(single.nodeId);
          const claim = { vmId: each.vmId, driver: single.driver, ...single.claim };
          nodes = nodes.map((record) => (record.id === single.nodeId ? { ...record, reserved: [...record.reserved, claim] } : record));
        }
      }),
    );
  });

  it('never overcommits memory or disk of any node, whatever the fleet and the turns', () => {
    fc.assert(
      fc.property(fc.array(someNode, { minLength: 1, maxLength: 6 }), fc.array(someTurn, { maxLength: 40 }), (makers, demands) => {
        const nodes = makers.map((make, at) => make(`n${at}`));
        const turns = demands.map((demand, at) => turn(`t${at}`, asTurn(demand)));
        const batch = planBatch({ turns, nodes, nowMs: NOW });
        for (const record of nodes) {
          const driver = record.drivers[0] ?? 'process';
          const sizing = DEFAULT_SIZINGS[driver];
          const taken = batch.flatMap(({ vmId, placement }) =>
            placement.verdict === 'chosen' && placement.nodeId === record.id
              ? [{ vmId, driver: placement.driver, ...placement.claim }]
              : [],
          );
          if (taken.length === 0) continue;
          const live = record.live.status === 'known' ? record.live.vms : [];
          const promised = sumCommitments(live, taken, DEFAULT_SIZINGS);
          const health = record.health ?? { memoryTotalMib: 0, memoryUsedMib: 0, diskFreeMib: 0 };
          const host = Math.max(record.rememberedBaselineMib ?? 0, sizing.baselineFloorMib);
          expect(promised.memoryMib + host + sizing.hostReserveMib).toBeLessThanOrEqual(health.memoryTotalMib);
          expect(promised.diskMib + sizing.diskReserveMib).toBeLessThanOrEqual(health.diskFreeMib ?? 0);
          const claims = taken.reduce((sum, claim) => sum + claim.memoryMib, 0);
          expect(health.memoryUsedMib + claims + sizing.hostReserveMib).toBeLessThanOrEqual(health.memoryTotalMib);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('stays affordable for a large fleet: judgements grow with nodes plus turns', () => {
    let reads = 0;
    const nodes = Array.from({ length: 500 }, (_, at) => {
      const record = node({ id: `n${at}`, name: `n${at}` });
      return Object.defineProperty({ ...record }, 'draining', {
        enumerable: true,
        get: () => {
          reads += 1;
          return false;
        },
      });
    });
    const placed = planBatch({ turns: Array.from({ length: 200 }, (_, at) => turn(`t${at}`)), nodes, nowMs: NOW });
    expect(placed.every((each) => each.placement.verdict === 'chosen')).toBe(true);
    expect(reads).toBeLessThanOrEqual(500 + 2 * 200);
  });
});

function asTurn(demand: { memoryMib: number | undefined; diskMib: number | undefined; driverFloor: Driver }): Partial<BatchTurn> {
  return {
    driverFloor: demand.driverFloor,
    demand: {
      ...(demand.memoryMib === undefined ? {} : { memoryMib: demand.memoryMib }),
      ...(demand.diskMib === undefined ? {} : { diskMib: demand.diskMib }),
    },
  };
}
