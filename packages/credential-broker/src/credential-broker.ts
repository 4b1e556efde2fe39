import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import { BrokerCall, type BrokerCallHost, refuse } from './broker-call.ts';
import { type BrokerHandle, HandleTable } from './handles.ts';
import { BROKER_LIMITS, type BrokerLimits, HANDLE_LOOK_EVERY_MS, MODEL_HEAD_MAX_BYTES } from './limits.ts';
import { type BrokerRoute, RouteTable } from './routes.ts';
import { UpstreamClient } from './upstream-client.ts';
import { readHandle } from './wire.ts';

export interface CredentialBrokerOptions {
  readonly limits?: Partial<BrokerLimits>;
  /** An upstream answered 401 or 403 to a credential. */
  readonly onCredentialRefused?: (route: string, status: number) => void;
  /** An upstream answered 401 to a credential that is renewable; told once for each. Requests wait for the next one, or until it is not renewable any more. */
  readonly onRenewalWanted?: (route: string, credential: string) => void;
  /** Finds the addresses of upstreams; default: the system. */
  readonly lookup?: LookupFunction;
  /** Clock of the handles, in `ms`. */
  readonly clock?: () => number;
}

/** Holds credentials, and sends requests with them for whoever has a handle. */
export interface CredentialBroker {
  /** Serves handles over HTTP/1.1; the caller makes it listen, on a Unix socket that guests cannot reach. */
  readonly server: Server;
  /** Takes a route, new or anew. */
  setRoute(name: string, route: BrokerRoute): void;
  /**
   * Takes the credential that the next request of a known route is sent with; null says that the route has none. Until the first one, requests wait.
   * `isRenewable`: there may be another one, should the upstream refuse it; default: no.
   */
  setCredential(name: string, credential: string | null, isRenewable?: boolean): void;
  /** Takes the list of all handles; calls of those that are not in it end at once. */
  setHandles(handles: readonly BrokerHandle[]): void;
  /** Ends every call and the server. */
  close(): void;
}

/** Room in a head for what a shim adds to the guest's. */
const HEAD_ROOM_BYTES = 4_096;
const HEAD_TIMEOUT_MS = 10_000;

/** The process that serves several shims has one of these; it trusts none of them with more than the route of its handle. */
export function createCredentialBroker(options: CredentialBrokerOptions = {}): CredentialBroker {
  const limits: BrokerLimits = { ...BROKER_LIMITS, ...options.limits };
  const handles = new HandleTable(options.clock ?? (() => performance.now()), (route) => new UpstreamClient(route, limits, options.lookup));
  const routes = new RouteTable();
  const { onCredentialRefused = () => undefined, onRenewalWanted = () => undefined } = options;
  const host: BrokerCallHost = { limits, onCredentialRefused, onRenewalWanted };

  const server = createServer({
    maxHeaderSize: MODEL_HEAD_MAX_BYTES + HEAD_ROOM_BYTES,
    insecureHTTPParser: false,
    headersTimeout: HEAD_TIMEOUT_MS,
    requestTimeout: 0,
    keepAliveTimeout: 0,
  });
  server.maxHeadersCount = 0;
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    request.on('error', () => response.destroy());
    response.on('error', () => response.destroy());
    const live = handles.find(readHandle(request.rawHeaders));
    const route = live === undefined ? undefined : routes.get(live.route);
    if (live === undefined || route === undefined) return refuse(response, 'handle_refused', true);
    if (live.calls.size >= limits.calls) return refuse(response, 'calls_busy', true);
    const call = new BrokerCall(host, route, live.upstreamOf(route.route), request, response);
    live.calls.add(call);
    response.once('close', () => live.calls.delete(call));
    void call.run();
  });
  server.on('clientError', (_error: Error, stream: Duplex) => void stream.destroy());
  server.on('connect', (_request: IncomingMessage, stream: Duplex) => void stream.destroy());
  server.on('upgrade', (_request: IncomingMessage, stream: Duplex) => void stream.destroy());

  const look = setInterval(() => handles.endLate(), HANDLE_LOOK_EVERY_MS);
  look.unref();
  return {
    server,
    setRoute: (name, route) => routes.set(name, route),
    setCredential: (name, credential, isRenewable = false) => routes.setCredential(name, credential, isRenewable),
    setHandles: (list) => handles.replace(list),
    close() {
      clearInterval(look);
      handles.replace([]);
      server.close();
      server.closeAllConnections();
    },
  };
}
