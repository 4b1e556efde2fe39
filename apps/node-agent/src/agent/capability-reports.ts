import type { NodeMessage } from '@firecrew/protocol';
import type { Logger } from 'pino';
import type { NodeConfig } from './config.ts';
import type { KnownBackends } from './known-backends.ts';
import { type ProbedDriver, probeCapabilities } from './probe-capabilities.ts';

export interface CapabilityReportsOptions {
  readonly drivers: readonly ProbedDriver[];
  readonly backends: Pick<KnownBackends, 'all'>;
  readonly agentVersion: string;
  readonly modelRoutes: NodeConfig['modelRoutes'];
  readonly log: Logger;
  /** False where there is no link now. */
  readonly send: (message: NodeMessage) => boolean;
}

/** Tells the server what this host can do, and again when that changes. */
export class CapabilityReports {
  readonly #options: CapabilityReportsOptions;
  #told = '';
  #last: Promise<void> = Promise.resolve();

  constructor(options: CapabilityReportsOptions) {
    this.#options = options;
  }

  /** Looks, and tells what is new, or all of it where `always`. One look at a time: it may boot a VM, and an older view must not come after a newer one. */
  async report(always: boolean): Promise<void> {
    this.#last = this.#last
      .then(() => this.#report(always))
      .catch((error: unknown) => this.#options.log.warn({ err: error }, 'what this host can do could not be found out'));
    await this.#last;
  }

  async #report(always: boolean): Promise<void> {
    const { drivers, backends, agentVersion, modelRoutes, send } = this.#options;
    const capabilities = await probeCapabilities({ drivers, backends: backends.all, agentVersion, modelRoutes });
    const text = JSON.stringify(capabilities);
    if (!always && text === this.#told) return;
    if (send({ t: 'capabilities', capabilities })) this.#told = text;
  }
}
