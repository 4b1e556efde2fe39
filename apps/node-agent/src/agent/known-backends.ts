import { builtinBackends, nodeBackendOf } from '@firecrew/backend';
import { CodedError } from '@firecrew/base';
import type { NodeBackend } from '@firecrew/protocol';
import type { BootReferences } from '@firecrew/rootfs';
import type { Driver } from '@firecrew/vmm';

/** What this node knows of backends: the builtin ones until its server has said which there are. */
export class KnownBackends {
  #all: readonly NodeBackend[] = builtinBackends.map(nodeBackendOf);

  get all(): readonly NodeBackend[] {
    return this.#all;
  }

  /** Takes the word of the server; undefined is that of one which knows the builtin ones alone. */
  replace(told: readonly NodeBackend[] = builtinBackends.map(nodeBackendOf)): void {
    this.#all = told;
  }

  /** The backend of that name. Throws `backend_unknown`. */
  find(name: string): NodeBackend {
    const found = this.#all.find((backend) => backend.name === name);
    if (found !== undefined) return found;
    throw new CodedError('backend_unknown', `this node was told of no backend ${JSON.stringify(name.slice(0, 64))}`, {
      id: name.slice(0, 64),
      action: 'Name its manifest in the settings of the server.',
    });
  }

  /** What VMs of one driver are made of: first those of backends that name no image, then one for each image that one names. */
  bootReferences(driver: Driver['name'], defaults: BootReferences): readonly BootReferences[] {
    const images = this.#all.filter(({ drivers }) => drivers.includes(driver)).flatMap(({ image }) => image ?? []);
    const { kernel, payload, image } = defaults;
    return [...new Set([image, ...images])].map((each) => ({ kernel, payload, image: each }));
  }
}
