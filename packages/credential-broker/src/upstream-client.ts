import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { TunnelAgent } from '@firecrew/egress-proxy';
import type { Upstream } from '@firecrew/model-route';
import { type BrokerLimits, MODEL_CALLS_MAX, MODEL_HEAD_MAX_BYTES } from './limits.ts';
import type { BrokerRoute } from './routes.ts';

/** Time that a connection without a request is kept for the next one. */
const KEPT_MS = 4_000;

/** A request that was begun. */
export interface Begun {
  readonly request: ClientRequest;
  /** Whether there was a connection, so that something of it may have arrived. */
  readonly isConnected: () => boolean;
}

/** The one place that dials: one upstream, fixed when it is made, over connections that are kept between requests. */
export class UpstreamClient {
  readonly #upstream: Upstream;
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #limits: BrokerLimits;

  constructor(
    { upstream, ca, chain }: Pick<BrokerRoute, 'upstream' | 'ca' | 'chain'>,
    limits: BrokerLimits,
    lookup: LookupFunction | undefined,
  ) {
    this.#upstream = upstream;
    this.#limits = limits;
    const kept = {
      keepAlive: true,
      maxSockets: MODEL_CALLS_MAX,
      maxFreeSockets: 8,
      timeout: KEPT_MS,
      ...(lookup === undefined ? {} : { lookup }),
    };
    // Verification is said, so that no variable of the environment takes it away.
    const trust = { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) };
    const { host } = upstream;
    const overTls = { ...kept, ...trust, ...(isIP(host) === 0 ? { servername: host } : {}) };
    if (!upstream.isTls) this.#agent = new HttpAgent(kept);
    else if (chain === undefined) this.#agent = new HttpsAgent(overTls);
    else this.#agent = new TunnelAgent({ chain, host, port: upstream.port, totalMs: limits.tunnelMs }, overTls);
  }

  /** Begins a request; `target` is appended to the upstream's path, and nothing of it can change where it goes. */
  begin(method: string, target: string, headers: readonly (readonly [string, string])[]): Begun {
    const { isTls, host, port, authority, basePath } = this.#upstream;
    const request = (isTls ? httpsRequest : httpRequest)({
      agent: this.#agent,
      host,
      port,
      method,
      path: `${basePath}${target}`,
      setHost: false,
      headers: [['host', authority], ...headers].flat(),
      maxHeaderSize: MODEL_HEAD_MAX_BYTES,
    });
    return { request, isConnected: this.#bound(request) };
  }

  close(): void {
    this.#agent.destroy();
  }

  /** One limit until the connection is there, another for its silence. */
  #bound(request: ClientRequest): () => boolean {
    let isConnected = false;
    const { dialMs, answerMs } = this.#limits;
    const late = () => request.destroy(Object.assign(new Error('the upstream took too long'), { code: 'ETIMEDOUT' }));
    const dialling = setTimeout(late, dialMs);
    const connected = () => {
      isConnected = true;
      clearTimeout(dialling);
      request.setTimeout(answerMs, late);
    };
    request.once('socket', (socket) => {
      if (request.reusedSocket || !socket.connecting) connected();
      else socket.once(this.#upstream.isTls ? 'secureConnect' : 'connect', connected);
    });
    request.once('close', () => clearTimeout(dialling));
    return () => isConnected;
  }
}
