import type { Agent as HttpsAgent } from 'node:https';
import type { EgressProxySettings } from '@firecrew/backend';
import { decideOperatorWay } from '@firecrew/egress-policy';
import { type ChainOptions, makeChain, TunnelAgent, tunnelDispatcher } from '@firecrew/egress-proxy';
import { isLoopback } from '@firecrew/protocol';
import { Agent } from 'undici';

/** Time for a tunnel, and again for the handshake in it, in `ms`. */
const CONNECT_TIMEOUT_MS = 10_000;

type Environment = Readonly<Record<string, string | undefined>>;
type Tunnelled = { readonly chain: ChainOptions; readonly dispatcher: Agent };

/**
 * How a node reaches its server. One on this host is reached directly, whatever proxy an environment names, since that would read the token; another one
 * through the operator's own proxy, where the operator says so.
 */
export class ServerConnections {
  readonly #direct = new Agent();
  readonly #tunnelled: Tunnelled | undefined;

  /** Throws `EgressConfigError`. */
  constructor(settings: EgressProxySettings | null = null, env: Environment = {}) {
    if (settings?.serverLink !== true) return;
    const chain = makeChain(settings, env);
    this.#tunnelled = { chain, dispatcher: tunnelDispatcher(chain, CONNECT_TIMEOUT_MS) };
  }

  /** Whether the operator's proxy stands between this node and the server at `url`. */
  isTunnelled(url: URL): boolean {
    return this.#wayOf(url) !== undefined;
  }

  /** Options of a call to the server at `url`. */
  requestOptions(url: URL): { readonly dispatcher?: Agent } {
    const way = this.#wayOf(url);
    if (way !== undefined) return { dispatcher: way.dispatcher };
    return isLoopback(url) ? { dispatcher: this.#direct } : {};
  }

  /** Options of a web socket to the server at `url`. A proxy that opens no tunnel is a `ChainError` of the socket. */
  socketOptions(url: URL): { readonly agent?: HttpsAgent; readonly handshakeTimeout?: number } {
    const way = this.#wayOf(url);
    if (way === undefined) return {};
    const target = { chain: way.chain, host: hostOf(url), port: portOf(url), totalMs: CONNECT_TIMEOUT_MS };
    // One socket, and then the next one, long after: nothing is kept.
    const agent = new TunnelAgent(target, { keepAlive: false, rejectUnauthorized: true });
    return { agent, handshakeTimeout: 3 * CONNECT_TIMEOUT_MS };
  }

  /** Undefined for a server that is dialled directly. Only one on this host is reached without TLS. */
  #wayOf(url: URL): Tunnelled | undefined {
    const way = this.#tunnelled;
    if (way === undefined) return undefined;
    return decideOperatorWay(way.chain.chain, url.hostname) === 'proxy' ? way : undefined;
  }
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

function portOf(url: URL): number {
  return url.port === '' ? 443 : Number(url.port);
}
