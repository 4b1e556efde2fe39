import { CodedError, messageOf } from '@firecrew/base';
import { type BootArtifacts, type BootReferences, findBootArtifacts } from '@firecrew/rootfs';
import type { BootSpec, Driver, DriverProbe, Vm } from '@firecrew/vmm';
import type { ImageFetcher } from '../images/image-fetcher.ts';

/** Time after which a driver that does not boot here is tried again, in `ms`: a probe boot costs seconds. */
export const PROBE_AGAIN_MS = 600_000;

/** What a VM driver of this host is made with. */
export interface VmSourceOptions {
  readonly name: Driver['name'];
  /** Root of the image store, and what of it VMs are made of. */
  readonly store: string;
  readonly references: BootReferences;
  /** What is happening about something that the store lacks, for a person, and whether it may be there soon. */
  readonly fetcher: Pick<ImageFetcher, 'statusOf' | 'isComing'> | undefined;
  readonly driverOf: (artifacts: BootArtifacts) => Driver;
  /** Time in `ms` that never goes back. */
  readonly clock: () => number;
}

/** What a look at an image says. */
export type ImageProbe = DriverProbe & {
  /** True where what it lacks may be there soon. */
  readonly coming?: boolean;
};

/** What came of the look at one image. */
interface Probed {
  readonly key: string;
  readonly atMs: number;
  readonly artifacts: BootArtifacts;
  readonly probe: DriverProbe;
}

/**
 * A driver whose VMs are made of what the image store names now. An image can be booted while kernel, payload and itself are there, and one
 * boot of them has worked; a name that leads elsewhere is probed anew.
 */
export class VmSource implements Driver {
  readonly name: Driver['name'];
  readonly #options: VmSourceOptions;
  /** By the reference of the image. */
  readonly #probed = new Map<string, Probed>();

  constructor(options: VmSourceOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** What a new attempt's VMs of that image are made of, null for the default one; undefined while no probe of it has worked. */
  artifactsOf(image: string | null): BootArtifacts | undefined {
    const last = this.#probed.get(image ?? this.#options.references.image);
    return last?.probe.available === true ? last.artifacts : undefined;
  }

  /** Looks at the default image. */
  async probe(): Promise<ImageProbe> {
    return await this.probeImage(this.#options.references.image);
  }

  async probeImage(image: string): Promise<ImageProbe> {
    const { store, references, driverOf, clock, fetcher } = this.#options;
    let artifacts: BootArtifacts;
    try {
      artifacts = await findBootArtifacts(store, { ...references, image });
    } catch (error) {
      this.#probed.delete(image);
      const lacked = lackedBy(error);
      const detail = [messageOf(error), lacked === undefined ? undefined : fetcher?.statusOf(lacked)].filter(Boolean).join('; ');
      return { available: false, isolation: 'vm', detail, coming: lacked !== undefined && fetcher?.isComing(lacked) === true };
    }
    const key = Object.values(artifacts).join();
    const last = this.#probed.get(image);
    if (last?.key === key && (last.probe.available || clock() - last.atMs < PROBE_AGAIN_MS)) return last.probe;
    // Two names of one image are one boot.
    const same = [...this.#probed.values()].find((other) => other.key === key && other.probe.available);
    const probe = same?.probe ?? (await driverOf(artifacts).probe());
    this.#probed.set(image, { key, atMs: clock(), artifacts, probe });
    return probe;
  }

  /** The node agent boots nothing: its shims do. */
  boot(spec: BootSpec): Promise<Vm> {
    return Promise.reject(new TypeError(`VM ${spec.vmId} is booted by its shim`));
  }
}

function lackedBy(error: unknown): string | undefined {
  return error instanceof CodedError && error.code === 'image_unknown' ? error.id : undefined;
}
