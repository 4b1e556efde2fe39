import type { ModelRouteSettings, ModelRoutes } from '@firecrew/backend';
import { codeOf, messageOf } from '@firecrew/base';
import type { TurnSpec } from '@firecrew/protocol';
import type { Logger } from 'pino';
import type { BrokerDesk } from '../broker/broker-desk.ts';
import type { BrokerReport, RouteOrder } from '../broker/broker-messages.ts';
import { readCredential } from '../broker/read-credential.ts';
import { LoginRefresher } from './login-refresher.ts';
import { type ModelLaunch, modelLaunchOf, readOperatorFile } from './model-launch.ts';
import { runLogin } from './run-login.ts';

/** A learning run has no model route unless its maker asked for one: what it reaches was reviewed by nobody yet. */
export function mayUseModelRoute({ learning }: Pick<TurnSpec, 'learning'>): boolean {
  return learning?.modelRoute !== 'closed';
}

/** The model routes of a node: what shims and what the broker have to know of them. */
export class NodeRoutes {
  readonly #routes: ModelRoutes;
  readonly #desk: Pick<BrokerDesk, 'setRoute' | 'socketPath'>;
  readonly #log: Logger;
  /** By their commands. */
  readonly #logins = new Map<string, LoginRefresher>();

  constructor(routes: ModelRoutes, desk: Pick<BrokerDesk, 'setRoute' | 'socketPath'>, log: Logger) {
    this.#routes = routes;
    this.#desk = desk;
    this.#log = log;
  }

  /** Whether there is any. */
  get exist(): boolean {
    return Object.keys(this.#routes).length > 0;
  }

  /** Tells the broker of all routes, for turns of an earlier node agent. One that cannot be used is logged; a new turn of it is not started. */
  async tellAll(): Promise<void> {
    for (const [backend, route] of Object.entries(this.#routes)) {
      await this.#tell(backend, route).catch((error: unknown) => {
        this.#log.error({ backend, code: codeOf(error), detail: messageOf(error) }, 'a model route cannot be used');
      });
    }
  }

  /** Says which routes are of no backend that the server knows: a typing error, or of a manifest that is gone. */
  tellUnknown(backends: readonly string[]): void {
    for (const backend of Object.keys(this.#routes))
      if (!backends.includes(backend))
        this.#log.warn({ backend, known: backends }, 'a model route is of a backend that the server does not know');
  }

  /** The route of a backend for a launch file, which holds no credential; null where it has none. Throws `model_route_unreadable`. */
  async launchOf(backend: string): Promise<ModelLaunch | null> {
    const route = Object.hasOwn(this.#routes, backend) ? this.#routes[backend] : undefined;
    if (route === undefined) return null;
    await this.#tell(backend, route);
    return await modelLaunchOf(route, this.#desk.socketPath);
  }

  /** Takes word of the broker that a provider refused a credential. Where it is not of a login, the operator alone can change it. */
  refused({ route, digest }: BrokerReport): void {
    const credential = Object.hasOwn(this.#routes, route) ? this.#routes[route]?.credential : undefined;
    if (credential != null && 'command' in credential) this.#loginOf(credential).refused(digest);
  }

  /** Ends the logins. */
  stop(): void {
    for (const login of this.#logins.values()) login.stop();
  }

  /** The refresher of a login, which routes with the same command share. */
  #loginOf({ command, everySeconds }: { readonly command: readonly string[]; readonly everySeconds: number }): LoginRefresher {
    const key = JSON.stringify(command);
    const known = this.#logins.get(key);
    if (known !== undefined) return known;
    const onChange = () => void this.#tellOf(key);
    const login = new LoginRefresher({ command, everyMs: everySeconds * 1000, run: runLogin, onChange, log: this.#log });
    this.#logins.set(key, login);
    return login;
  }

  /** Tells the broker of every route of a login. */
  async #tellOf(key: string): Promise<void> {
    for (const [backend, route] of Object.entries(this.#routes)) {
      const { credential } = route;
      if (credential === null || !('command' in credential) || JSON.stringify(credential.command) !== key) continue;
      await this.#tell(backend, route).catch((error: unknown) => {
        this.#log.error({ backend, code: codeOf(error), detail: messageOf(error) }, 'a model route cannot be used');
      });
    }
  }

  async #tell(backend: string, route: ModelRouteSettings): Promise<void> {
    this.#desk.setRoute(backend, {
      format: route.format,
      upstream: route.upstream,
      ca: route.caFile === undefined ? null : await readOperatorFile(route.caFile, (text) => text),
      header: route.header ?? null,
      features: route.features,
      credential: await this.#sourceOf(backend, route),
      viaProxy: route.viaProxy,
    });
  }

  /** A file is the broker's to read; a variable is one of this process, which also runs the commands of logins. */
  async #sourceOf(backend: string, { credential }: ModelRouteSettings): Promise<RouteOrder['credential']> {
    if (credential === null || 'file' in credential) return credential;
    if ('command' in credential) {
      const login = this.#loginOf(credential);
      const value = await login.current();
      return value === undefined ? { missing: true } : { value, isRenewable: login.isRenewable };
    }
    try {
      return { value: await readCredential(credential, process.env), isRenewable: false };
    } catch (error) {
      this.#log.error({ backend, code: codeOf(error), detail: messageOf(error) }, 'a model route has no usable credential');
      return { missing: true };
    }
  }
}
