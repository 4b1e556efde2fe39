import { type BatchTurn, type NodeRecord, planBatch } from '@firecrew/placement';
import { type BenchRow, measured } from '../support/row.ts';

const NOW_MS = 1_000_000;
const TURNS = 1_000;
const ROUNDS = 5;

function makeNode(index: number): NodeRecord {
  return {
    id: `nod_${index}`,
    name: `host-${index}`,
    draining: index % 97 === 0,
    connected: index % 89 !== 0,
    drivers: index % 3 === 0 ? ['process', 'firecracker'] : ['process'],
    images: index % 2 === 0 ? { firecracker: ['codex'] } : {},
    health: {
      atMs: NOW_MS - (index % 20_000),
      memoryTotalMib: 65_536 + (index % 7) * 8192,
      memoryUsedMib: 2000 + (index % 11) * 1500,
      diskFreeMib: 400_000,
    },
    live: {
      status: 'known',
      vms: Array.from({ length: index % 4 }, (_, vm) => ({ vmId: `vm-${index}-${vm}`, memoryMib: 8192, diskMib: 20_000 })),
    },
    reserved: [],
  };
}

function makeTurn(index: number): BatchTurn {
  return { vmId: `turn-${index}`, demand: { memoryMib: index % 2 === 0 ? 4096 : 8192 }, backends: [], driverFloor: 'process' };
}

function place(nodes: readonly NodeRecord[]): { ms: number; chosen: number } {
  const turns = Array.from({ length: TURNS }, (_, index) => makeTurn(index));
  let ms = Number.POSITIVE_INFINITY;
  let chosen = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const from = performance.now();
    const placed = planBatch({ turns, nodes, nowMs: NOW_MS });
    ms = Math.min(ms, performance.now() - from);
    chosen = placed.filter(({ placement }) => placement.verdict === 'chosen').length;
  }
  return { ms, chosen };
}

/** 1,000 turns of two sizes on fleets of three sizes. */
export async function placementSuite(): Promise<BenchRow[]> {
  const times = new Map<number, { ms: number; chosen: number }>();
  for (const count of [1_000, 10_000, 100_000]) times.set(count, place(Array.from({ length: count }, (_, index) => makeNode(index))));
  const rows = [...times].map(([count, { ms, chosen }]) =>
    measured(`placement: ${TURNS} turns on ${count} nodes`, ms, 'ms', count === 10_000 ? { atMost: 200 } : undefined, `${chosen} placed`),
  );
  const [small, middle, large] = [...times.values()].map(({ ms }) => ms);
  return [
    ...rows,
    measured('placement: time of 10 times the nodes (10,000)', (middle ?? 0) / (small ?? 1), 'x'),
    measured('placement: time of 10 times the nodes (100,000)', (large ?? 0) / (middle ?? 1), 'x'),
  ];
}
