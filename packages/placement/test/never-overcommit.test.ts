import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BatchTurn, type Commitment, MAX_HEALTH_AGE_MS, type NodeRecord, planBatch } from '../src/index.ts';
import { type Planner, type Seen, SteppedFleet, someHost, someStep } from './step-fleet.ts';

/** Steps of one fleet. */
const STEPS = 200;
/** Fleets: 20,000 steps, and a million in a soak, which steps 50 times as many. */
const FLEETS = 100;
/** Fleets in which a planner with a fault must be shown; the rarest takes some tens. */
const FAULTY_FLEETS = 3000;

function stepFleets(plan: Planner, parameters: fc.Parameters<unknown> = { numRuns: FLEETS }): Seen {
  const seen: Seen = { placed: 0, refused: 0, mixed: 0, besideUnknown: 0, remembered: 0 };
  const hosts = fc.array(someHost, { minLength: 1, maxLength: 4 });
  const steps = fc.array(someStep, { minLength: STEPS, maxLength: STEPS });
  fc.assert(
    fc.property(hosts, steps, (made, happening) => {
      const fleet = new SteppedFleet(made, plan, seen);
      for (const step of happening) fleet.step(step);
    }),
    parameters,
  );
  return seen;
}

/** The library's planner, one turn after another, each on a fleet that is seen otherwise than it is. */
function seenAs(change: (node: NodeRecord, turn: BatchTurn, nowMs: number) => NodeRecord): Planner {
  return ({ turns, nodes, nowMs }) => {
    let now = nodes;
    return turns.map((turn) => {
      const [answer] = planBatch({ turns: [turn], nodes: now.map((node) => change(node, turn, nowMs)), nowMs });
      if (answer === undefined) throw new Error('a turn got no answer');
      const { placement } = answer;
      if (placement.verdict === 'chosen') {
        const taken = { vmId: turn.vmId, driver: placement.driver, ...placement.claim };
        now = now.map((node) => (node.id === placement.nodeId ? { ...node, reserved: [...node.reserved, taken] } : node));
      }
      return answer;
    });
  };
}

function eachCommitment(node: NodeRecord, change: (item: Commitment) => Commitment): NodeRecord {
  const live = node.live.status === 'known' ? { ...node.live, vms: node.live.vms.map(change) } : node.live;
  return { ...node, live, reserved: node.reserved.map(change) };
}

const withHealth = (node: NodeRecord, over: Partial<NonNullable<NodeRecord['health']>>): NodeRecord =>
  node.health === undefined ? node : { ...node, health: { ...node.health, ...over } };

describe('a fleet of many steps', () => {
  it('is never overcommitted, whatever boots, ends, lags, lies, drains, joins and leaves', () => {
    const seen = stepFleets(planBatch);
    expect(Object.entries(seen).filter(([, count]) => count < FLEETS)).toEqual([]);
  });

  it('is not either when its turns are planned one by one', () => {
    expect(stepFleets(seenAs((node) => node)).placed).toBeGreaterThan(FLEETS);
  });

  it.each<[string, Parameters<typeof seenAs>[0]]>([
    [
      'keeps the reserve of the driver that asks',
      (node, turn) =>
        turn.driver === 'process' && node.drivers.includes('process')
          ? { ...eachCommitment(node, (item) => ({ ...item, driver: 'process' })), drivers: ['process'] }
          : node,
    ],
    [
      'charges what it does not know as what asks',
      (node, turn) =>
        turn.driver === 'process'
          ? eachCommitment(node, (item) => ({ ...item, memoryMib: item.memoryMib ?? 1024, diskMib: item.diskMib ?? 2048 }))
          : node,
    ],
    ['forgets turns that have not booted', (node) => ({ ...node, reserved: [] })],
    ['forgets VMs that the server does not hold', (node) => ({ ...node, live: { status: 'known', vms: [] } })],
    ['takes no answer for no VM', (node) => (node.live.status === 'known' ? node : { ...node, live: { status: 'known', vms: [] } })],
    ['takes a part for the whole claim', (node) => eachCommitment(node, (item) => ({ ...item, memoryMib: 1024 }))],
    ['forgets what disk is promised', (node) => eachCommitment(node, (item) => ({ ...item, diskUsedMib: 1_000_000 }))],
    ['believes that what is observed is nothing', (node) => withHealth(node, { memoryUsedMib: 0 })],
    ['forgets the idle footprint', ({ rememberedBaselineMib: _, ...node }) => node],
    ['believes old readings', (node, _, nowMs) => withHealth(node, { atMs: nowMs - MAX_HEALTH_AGE_MS })],
    ['fills hosts that drain', (node) => ({ ...node, draining: false })],
    ['fills hosts that are away', (node) => ({ ...node, connected: true })],
    ['takes unknown disk for plenty', (node) => withHealth(node, { diskFreeMib: node.health?.diskFreeMib ?? 1_000_000 })],
  ])('shows a planner that %s', (_, change) => {
    expect(() => stepFleets(seenAs(change), { numRuns: FAULTY_FLEETS, endOnFailure: true })).toThrow(/Property failed/);
  });
});
