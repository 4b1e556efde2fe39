import type { ChainOptions } from '@firecrew/egress-proxy';
import type { CredentialHeader, ModelFeature, ModelFormat, Upstream } from '@firecrew/model-route';
import { CredentialSlot } from './credential-slot.ts';

/** Where the calls of a route go, and how its credential is shown there. */
export interface BrokerRoute {
  readonly format: ModelFormat;
  readonly upstream: Upstream;
  /** Certificates, PEM, that alone are trusted for the upstream; absent: those of the system. */
  readonly ca?: string;
  /** The operator's own proxy, through which the upstream is reached; absent: directly. It is for upstreams over TLS alone. */
  readonly chain?: ChainOptions;
  /** How the credential is shown; absent: as the format has it. */
  readonly header?: CredentialHeader;
  /** Features that may be used: those that are paths of their own are judged here too; absent: none. */
  readonly features?: readonly ModelFeature[];
}

/** A route with its credential. */
export interface OpenRoute {
  readonly name: string;
  readonly route: BrokerRoute;
  readonly credential: CredentialSlot;
}

/** The routes of a broker by name. A credential stays with its name when the route is said anew. */
export class RouteTable {
  readonly #routes = new Map<string, OpenRoute>();

  get(name: string): OpenRoute | undefined {
    return this.#routes.get(name);
  }

  /** Takes a route for calls from now on; those under way end as they began. */
  set(name: string, route: BrokerRoute): void {
    const before = this.#routes.get(name);
    if (before !== undefined && JSON.stringify(before.route) === JSON.stringify(route)) return;
    this.#routes.set(name, { name, route, credential: before?.credential ?? new CredentialSlot() });
  }

  setCredential(name: string, credential: string | null, isRenewable: boolean): void {
    this.#routes.get(name)?.credential.set(credential, isRenewable);
  }
}
