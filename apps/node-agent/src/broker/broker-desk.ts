import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { BROKER_OWNER, newHandle } from '@firecrew/credential-broker';
import type { Logger } from 'pino';
import type { BrokerOrder, BrokerReport, ProxyOrder, RouteOrder } from './broker-messages.ts';
import { BrokerProcess } from './broker-process.ts';

const FOLDER = 'broker';
const SOCKET = 'model.sock';

/** What of a broker the keeper of a turn needs. */
export interface Handles {
  /** A new handle for a route; undefined where there is no such route. */
  open(route: string, validUntilMs: number): string | undefined;
  renew(handle: string, validUntilMs: number): void;
  /** Takes a handle away: its calls end at once. */
  close(handle: string): void;
}

/** What the keeper of a turn gets that may use no route, whatever routes the node has. */
export const NO_HANDLES: Handles = { open: () => undefined, renew: () => undefined, close: () => undefined };

export interface BrokerDeskOptions {
  /** The node's own folder. */
  readonly home: string;
  readonly program: { readonly node: string; readonly broker: string };
  /** Whether the broker gets an account of its own. */
  readonly isRoot: boolean;
  readonly log: Logger;
  /** Takes what the broker has to tell. */
  readonly onReport?: (report: BrokerReport) => void;
}

/** What the node agent knows of routes and handles, in memory alone, and the one broker of this node that is told of it. */
export class BrokerDesk implements Handles {
  readonly socketPath: string;
  readonly #options: BrokerDeskOptions;
  readonly #process: BrokerProcess;
  #proxy: ProxyOrder | null = null;
  readonly #routes = new Map<string, RouteOrder>();
  readonly #handles = new Map<string, { route: string; validUntilMs: number }>();

  constructor(options: BrokerDeskOptions) {
    const { home, program, isRoot, log, onReport = () => undefined } = options;
    this.#options = options;
    this.socketPath = join(home, FOLDER, SOCKET);
    const account = isRoot ? BROKER_OWNER : null;
    const state = () => [this.#routesOrder(), this.#handlesOrder()];
    this.#process = new BrokerProcess({ ...program, socketPath: this.socketPath, account }, log, state, onReport);
  }

  /** Makes the folder of the socket, which the broker's account alone may enter, and starts the broker. */
  async start(): Promise<void> {
    const folder = join(this.#options.home, FOLDER);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
    if (this.#options.isRoot) await chown(folder, BROKER_OWNER.uid, BROKER_OWNER.gid);
    this.#process.start();
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  /** Takes the operator's own proxy; it is told before the broker is started, and stays. */
  setProxy(proxy: ProxyOrder | null): void {
    this.#proxy = proxy;
  }

  setRoute(name: string, route: RouteOrder): void {
    if (JSON.stringify(this.#routes.get(name)) === JSON.stringify(route)) return;
    this.#routes.set(name, route);
    this.#process.send(this.#routesOrder());
  }

  open(route: string, validUntilMs: number): string | undefined {
    if (!this.#routes.has(route)) return undefined;
    const handle = newHandle();
    this.#handles.set(handle, { route, validUntilMs });
    this.#process.send(this.#handlesOrder());
    return handle;
  }

  renew(handle: string, validUntilMs: number): void {
    const known = this.#handles.get(handle);
    if (known === undefined || known.validUntilMs >= validUntilMs) return;
    known.validUntilMs = validUntilMs;
    this.#process.send(this.#handlesOrder());
  }

  close(handle: string): void {
    if (this.#handles.delete(handle)) this.#process.send(this.#handlesOrder());
  }

  #routesOrder(): BrokerOrder {
    return { t: 'routes', proxy: this.#proxy, routes: Object.fromEntries(this.#routes) };
  }

  #handlesOrder(): BrokerOrder {
    return { t: 'handles', handles: [...this.#handles].map(([handle, facts]) => ({ handle, ...facts })) };
  }
}
