import type { NodeRecord, PlacementRequest } from '../src/index.ts';

export const NOW = 1_000_000;
export const GIB = 1024;

/** A healthy VM node of 60 GiB with plenty of disk; `health` overrides parts of its reading. */
export function node(over: Partial<Omit<NodeRecord, 'health'>> & { health?: Partial<NonNullable<NodeRecord['health']>> } = {}): NodeRecord {
  const { health, ...rest } = over;
  return {
    id: 'nod_a',
    name: 'alpha',
    draining: false,
    connected: true,
    drivers: ['firecracker'],
    images: {},
    live: { status: 'known', vms: [] },
    reserved: [],
    ...rest,
    health: { atMs: NOW, memoryTotalMib: 61_440, memoryUsedMib: 12_000, diskFreeMib: 500 * GIB, ...health },
  };
}

/** So many VMs of the default size. */
export function vms(count: number, prefix = 'vm'): NonNullable<Extract<NodeRecord['live'], { status: 'known' }>['vms']> {
  return Array.from({ length: count }, (_, at) => ({
    vmId: `${prefix}-${at}`,
    memoryMib: 8192 + 128,
    diskMib: 12 * GIB,
    diskUsedMib: 12 * GIB,
  }));
}

export function request(nodes: readonly NodeRecord[], over: Partial<PlacementRequest> = {}): PlacementRequest {
  return { nodes, demand: {}, backends: [], driverFloor: 'qemu', nowMs: NOW, ...over };
}
