import { readFile, statfs } from 'node:fs/promises';
import { loadavg } from 'node:os';
import type { NodeHealth } from '@firecrew/protocol';

const KIB_PER_MIB = 1024;

/** What the host has and uses now. A value that cannot be read is null, never 0. */
export async function readHealth(folder: string): Promise<NodeHealth> {
  const memory = await readMemory();
  return { ...memory, diskFreeMib: await freeDisk(folder), cpuPercent: null, load1: loadavg()[0] ?? null };
}

async function readMemory(): Promise<{ memoryTotalMib: number; memoryUsedMib: number }> {
  const text = await readFile('/proc/meminfo', 'latin1');
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN);
  const total = kib('MemTotal');
  const available = kib('MemAvailable');
  if (!Number.isFinite(total) || !Number.isFinite(available)) return { memoryTotalMib: 0, memoryUsedMib: 0 };
  return { memoryTotalMib: Math.floor(total / KIB_PER_MIB), memoryUsedMib: Math.ceil((total - available) / KIB_PER_MIB) };
}

async function freeDisk(folder: string): Promise<number | null> {
  try {
    const stats = await statfs(folder);
    return Math.floor((stats.bavail * stats.bsize) / (1024 * 1024));
  } catch {
    return null;
  }
}
