import type { ModelRoutes } from '@firecrew/backend';
import { codeOf, messageOf } from '@firecrew/base';
import type { Logger } from 'pino';
import { type ModelLaunch, modelLaunchOf } from './model-launch.ts';
import { readCredential } from './read-credential.ts';

/** The model routes of a node, with their credentials as the operator keeps them now. */
export class NodeRoutes {
  readonly #routes: ModelRoutes;
  readonly #log: Logger;
  /** The newest fault of each backend: each is told once. */
  readonly #told = new Map<string, string>();

  constructor(routes: ModelRoutes, log: Logger) {
    this.#routes = routes;
    this.#log = log;
  }

  /** The route of a backend for a launch file, which holds no credential; null where it has none. Throws `model_route_unreadable`. */
  async launchOf(backend: string): Promise<ModelLaunch | null> {
    const route = Object.hasOwn(this.#routes, backend) ? this.#routes[backend] : undefined;
    return route === undefined ? null : await modelLaunchOf(route);
  }

  /** The credential of a backend as it is now; undefined where its route has none, or it cannot be read, which is logged. */
  async credentialOf(backend: string): Promise<string | undefined> {
    const source = Object.hasOwn(this.#routes, backend) ? this.#routes[backend]?.credential : undefined;
    if (source === undefined || source === null) return undefined;
    try {
      const credential = await readCredential(source, process.env);
      this.#told.delete(backend);
      return credential;
    } catch (error) {
      const message = messageOf(error);
      if (this.#told.get(backend) !== message)
        this.#log.error({ backend, code: codeOf(error), detail: message }, 'a model route has no usable credential');
      this.#told.set(backend, message);
      return undefined;
    }
  }
}
