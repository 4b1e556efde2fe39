import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ProcessDriver, type Vm } from '@firecrew/vmm';

const BUNDLE = fileURLToPath(new URL('../../apps/guest-agent/bundle/guest-agent.cjs', import.meta.url));

/** A fresh folder in memory where the machine has one, that every user can walk. */
export async function memoryFolder(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'fcb-'));
  await chmod(path, 0o711);
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Boots one sandbox of the process driver with the real guest agent, runs, and destroys it. */
export async function withSandbox<T>(folder: string, use: (vm: Vm, agentPid: number) => Promise<T>): Promise<T> {
  const vm = await new ProcessDriver({ bubblewrap: 'auto' }).boot({
    vmId: 'vm-bench',
    folder: join(folder, 'v'),
    guestAgent: { node: process.execPath, bundle: BUNDLE },
    bindPaths: [],
    path: '/usr/local/bin:/usr/bin:/bin',
    caBundle: null,
    limits: { memoryMib: 2048, diskMib: 4096 },
    allowUnisolated: true,
    attemptMarker: randomUUID(),
    onStream: () => undefined,
    onRefused: () => undefined,
  });
  try {
    const agent = (await vm.pids()).flatMap((pid) => [pid, ...childrenOf(pid)]).find(isAgent);
    if (agent === undefined) throw new Error('the guest agent of the sandbox was not found');
    return await use(vm, agent);
  } finally {
    await vm.destroy();
  }
}

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === '' ? [] : children.split(' ').map(Number);
}

function isAgent(pid: number): boolean {
  const [program, ...words] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  return program?.endsWith('node') === true && words.some((word) => word.endsWith('.mjs'));
}
