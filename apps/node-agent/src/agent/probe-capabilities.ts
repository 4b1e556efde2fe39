import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { availableParallelism, release } from 'node:os';
import { builtinBackends, type ModelRoutes } from '@firecrew/backend';
import type { NodeCapabilities } from '@firecrew/protocol';
import type { Driver } from '@firecrew/vmm';

/** Most that is told of why a driver cannot be used. */
const DETAIL_MAX_CHARS = 2_000;

/** What this host can do, probed and never assumed: a complete view that replaces the one before. */
export async function probeCapabilities(
  drivers: readonly Driver[],
  agentVersion: string,
  modelRoutes: ModelRoutes = {},
): Promise<NodeCapabilities> {
  const found: NodeCapabilities['drivers'] = [];
  const unavailable: { driver: Driver['name']; detail: string }[] = [];
  for (const driver of drivers) {
    const probe = await driver.probe();
    if (!probe.available) {
      unavailable.push({ driver: driver.name, detail: probe.detail.slice(0, DETAIL_MAX_CHARS) });
      continue;
    }
    // A backend without an image runs with the tools of the host; one with an image needs it here, and the process driver has none.
    const backends = builtinBackends
      .filter((backend) => backend.image === null && backend.drivers.includes(driver.name))
      .map((backend) => backend.name);
    found.push({ driver: driver.name, isolation: probe.isolation, backends, detail: probe.detail });
  }
  return {
    drivers: found,
    unavailable,
    // Where a route leads and what it shows there stays with the node.
    modelRoutes: Object.entries(modelRoutes).map(([backend, { format }]) => ({ backend, format })),
    kvm: await canOpenKvm(),
    cpus: availableParallelism(),
    platform: `${process.platform} ${process.arch} ${release()}`,
    agentVersion,
  };
}

/** Presence says nothing: the device counts when it can be opened for reading and writing. */
async function canOpenKvm(): Promise<boolean> {
  return await access('/dev/kvm', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
}
