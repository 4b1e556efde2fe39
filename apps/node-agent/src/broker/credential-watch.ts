import { codeOf, messageOf } from '@firecrew/base';
import type { CredentialBroker } from '@firecrew/credential-broker';
import type { Logger } from 'pino';
import type { RouteOrder } from './broker-messages.ts';
import { readCredential } from './read-credential.ts';

/** Period of the look at files of routes that are in use. */
const LOOK_EVERY_MS = 250;

/** Keeps a broker's credentials as the operator keeps them: files are read once, so that a fault shows early, and again as long as a turn may use their route. */
export class CredentialWatch {
  readonly #broker: Pick<CredentialBroker, 'setCredential'>;
  readonly #log: Logger;
  #files = new Map<string, string>();
  #inUse: ReadonlySet<string> = new Set();
  /** The newest credential of each route, and the newest fault, which is told once. */
  readonly #known = new Map<string, string>();
  readonly #told = new Map<string, string>();
  #looked: Promise<void> = Promise.resolve();

  constructor(broker: Pick<CredentialBroker, 'setCredential'>, log: Logger) {
    this.#broker = broker;
    this.#log = log;
  }

  start(): void {
    setInterval(() => this.#lookSoon(this.#inUse), LOOK_EVERY_MS);
  }

  setRoutes(routes: Readonly<Record<string, RouteOrder>>): void {
    this.#files = new Map();
    for (const [name, { credential }] of Object.entries(routes)) {
      if (credential === null) this.#broker.setCredential(name, null);
      else if ('value' in credential) this.#broker.setCredential(name, credential.value, credential.isRenewable);
      else if ('file' in credential) this.#files.set(name, credential.file);
    }
    this.#lookSoon(new Set(this.#files.keys()));
  }

  /** Says which routes have a turn. */
  setInUse(routes: ReadonlySet<string>): void {
    this.#inUse = routes;
    this.#lookSoon(routes);
  }

  /** Resolves when the looks that were asked for are over. */
  async settled(): Promise<void> {
    await this.#looked;
  }

  /** One look at a time: an older reading must not come after a newer one. */
  #lookSoon(routes: ReadonlySet<string>): void {
    this.#looked = this.#looked.then(() => this.#look(routes));
  }

  async #look(routes: ReadonlySet<string>): Promise<void> {
    for (const [name, file] of this.#files) {
      if (!routes.has(name)) continue;
      try {
        const credential = await readCredential({ file }, {});
        this.#told.delete(name);
        if (this.#known.get(name) === credential) continue;
        this.#known.set(name, credential);
        this.#broker.setCredential(name, credential);
      } catch (error) {
        const detail = messageOf(error);
        if (this.#told.get(name) !== detail)
          this.#log.error(
            { backend: name, code: codeOf(error), detail, uid: process.getuid?.() },
            'a model route has no usable credential',
          );
        this.#told.set(name, detail);
      }
    }
  }
}
