import type { AgentConfig } from './agent-config.ts';
import type { GuestServices } from './guest-services.ts';
import { LinkClient } from './link/link-client.ts';

/** Time for the answer to a shutdown to leave, in `ms`. */
export const LAST_ANSWER_MS = 100;

/**
 * The agent of one VM, from start to end. Its program comes in two parts: this one dials the host, and once the first dial has left it loads
 * the other, which is most of it. Under emulation that takes about as long as the start of Node; the host meanwhile has the session, and its
 * requests wait as open streams.
 */
export class GuestAgent {
  readonly #client: LinkClient;
  readonly #services: Promise<GuestServices>;
  #closing: Promise<void> | undefined;

  /** Does nothing until `run`. `note` gets lines for the console. */
  constructor(config: AgentConfig, note: (text: string) => void) {
    const dialled = Promise.withResolvers<void>();
    this.#client = new LinkClient(config, {
      onStream: async (stream, head) => (await this.#services).serve(stream, head),
      onDial: dialled.resolve,
      note,
    });
    const session = (): LinkClient['session'] => this.#client.session;
    const shutdown = (forget: readonly string[]): void => {
      setTimeout(() => void this.close(forget), LAST_ANSWER_MS);
    };
    this.#services = dialled.promise
      .then(() => import('./guest-services.ts'))
      .then((loaded) => loaded.GuestServices.open({ config, session, shutdown, note }));
    // `run` rejects with it.
    this.#services.catch(() => undefined);
  }

  /** Serves the host until `close`. Rejects like `LinkClient.run`, and when the guest cannot be made ready. */
  async run(): Promise<void> {
    const ended = this.#client.run();
    await Promise.race([ended, this.#services.then(() => ended)]);
  }

  /** Kills what runs, removes the folders, then ends listeners and link. */
  close(forget: readonly string[] = []): Promise<void> {
    this.#closing ??= this.#close(forget);
    return this.#closing;
  }

  async #close(forget: readonly string[]): Promise<void> {
    // An agent that never dialled has nothing to end.
    if (this.#client.hasDialled) await (await this.#services).close(forget);
    await this.#client.close();
  }
}
