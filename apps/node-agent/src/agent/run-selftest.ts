import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@firecrew/base';
import { type BootArtifacts, type BootReferences, findBootArtifacts } from '@firecrew/rootfs';
import { type Driver, ownUsers, VmUsers } from '@firecrew/vmm';
import { firecrackerDriverOf, firecrackerLaunchOf } from '../vm/firecracker-settings.ts';
import { qemuDriverOf, qemuLaunchOf } from '../vm/qemu-settings.ts';
import { type SelftestResult, type SelftestSpec, selftestDriver } from '../vm/selftest.ts';
import { vmUsersOf } from '../vm/vm-users.ts';
import type { NodeConfig } from './config.ts';

/** What a VM of the self-test gets; enough for a small command. */
const LIMITS = { memoryMib: 512, diskMib: 256 } as const;
const NAME_BYTES = 4;

/**
 * Boots one VM with each driver of microVMs that the configuration has, one after another. Empty where it has none. An abort ends the VM that
 * is up and boots no other.
 */
export async function runSelftest(config: NodeConfig, signal: AbortSignal): Promise<SelftestResult[]> {
  const results: SelftestResult[] = [];
  const users = vmUsersOf(config);
  for (const { name, store, driverOf, ...references } of configured(config)) {
    if (signal.aborted) break;
    try {
      const driver = driverOf(await findBootArtifacts(store, references));
      const owned = users === null ? driver : ownUsers(driver, new VmUsers(users));
      results.push(await selftestDriver(owned, await specOf(config), () => performance.now(), signal));
    } catch (error) {
      results.push({ driver: name, ok: false, detail: messageOf(error) });
    }
  }
  return results;
}

interface Configured extends BootReferences {
  readonly name: Driver['name'];
  readonly store: string;
  readonly driverOf: (artifacts: BootArtifacts) => Driver;
}

function configured({ qemu, firecracker, home }: NodeConfig): Configured[] {
  const found: Configured[] = [];
  if (qemu !== null) found.push({ name: 'qemu', ...qemu, driverOf: (artifacts) => qemuDriverOf(qemuLaunchOf(qemu, artifacts), false) });
  if (firecracker !== null) {
    const driverOf = (artifacts: BootArtifacts) => firecrackerDriverOf(firecrackerLaunchOf(firecracker, artifacts), home);
    found.push({ name: 'firecracker', ...firecracker, driverOf });
  }
  return found;
}

async function specOf({ home, owners }: NodeConfig): Promise<SelftestSpec> {
  const name = `selftest-${randomBytes(NAME_BYTES).toString('hex')}`;
  const folder = join(home, 'selftest');
  await mkdir(folder, { recursive: true, mode: owners === null ? 0o700 : 0o711 });
  return {
    vmId: name,
    folder: join(folder, name),
    guestAgent: { node: process.execPath, bundle: '/nonexistent' },
    bindPaths: [],
    path: '/usr/bin:/bin',
    caBundle: null,
    limits: LIMITS,
    allowUnisolated: false,
    attemptMarker: name,
  };
}
