import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { availableParallelism, release } from 'node:os';
import type { ModelRoutes } from '@firecrew/backend';
import type { NodeBackend, NodeCapabilities } from '@firecrew/protocol';
import type { Driver } from '@firecrew/vmm';
import type { ImageProbe } from '../vm/vm-source.ts';

/** Most that is told of a driver, and of why it, or an image, cannot be used. */
const DETAIL_MAX_CHARS = 2_000;

/** A driver as it is looked at; one without `probeImage` has no images. */
export interface ProbedDriver {
  readonly name: Driver['name'];
  probe(): Promise<ImageProbe>;
  probeImage?(image: string): Promise<ImageProbe>;
}

/** What is looked at beside the host itself. */
export interface Probing {
  readonly drivers: readonly ProbedDriver[];
  readonly backends: readonly NodeBackend[];
  readonly agentVersion: string;
  readonly modelRoutes?: ModelRoutes;
}

/** What this host can do, probed and never assumed: a complete view that replaces the one before. */
export async function probeCapabilities({ drivers, backends, agentVersion, modelRoutes = {} }: Probing): Promise<NodeCapabilities> {
  const found: NodeCapabilities['drivers'] = [];
  const unavailable: NonNullable<NodeCapabilities['unavailable']> = [];
  for (const driver of drivers) {
    const { probe, bootable, lacking } = await probeBackends(driver, backends);
    const detail = probe.detail.slice(0, DETAIL_MAX_CHARS);
    if (bootable.length === 0 && !probe.available) unavailable.push({ driver: driver.name, detail, ...comingOf(probe) });
    else found.push({ driver: driver.name, isolation: probe.isolation, backends: bootable, detail, lacking });
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

/**
 * Which backends a driver can boot here: one without an image runs in the default image, or with the tools of the host; one with an image
 * needs that. Gives the names, the probe of the driver, and why an image cannot be booted.
 */
async function probeBackends(driver: ProbedDriver, backends: readonly NodeBackend[]) {
  const probe = await driver.probe();
  const bootable: string[] = [];
  const lacking: NonNullable<NodeCapabilities['drivers'][number]['lacking']> = [];
  for (const { name, image, drivers } of backends) {
    if (!drivers.includes(driver.name)) continue;
    const own = image === null ? probe : await driver.probeImage?.(image);
    if (own?.available === true) bootable.push(name);
    else if (image !== null)
      lacking.push({ backend: name, detail: (own?.detail ?? 'the driver has no images').slice(0, DETAIL_MAX_CHARS), ...comingOf(own) });
  }
  return { probe, bootable, lacking };
}

function comingOf(probe: ImageProbe | undefined) {
  return probe?.coming === true ? { coming: true } : {};
}

/** Presence says nothing: the device counts when it can be opened for reading and writing. */
async function canOpenKvm(): Promise<boolean> {
  return await access('/dev/kvm', constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
}
