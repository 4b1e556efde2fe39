import type { Socket } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { ChainOptions } from './chain-dial.ts';
import { openOperatorTunnel } from './open-operator-tunnel.ts';

/**
 * Connections of undici, over TLS alone, each through a tunnel of its own of the operator's proxy; `totalMs` bounds the tunnel, and again the handshake in it. A
 * tunnel that is not opened is a `ChainError` of the call.
 */
export function tunnelDispatcher(chain: ChainOptions, totalMs: number): Agent {
  const overTls = buildConnector({ timeout: totalMs, allowH2: false, rejectUnauthorized: true });
  const connect: buildConnector.connector = (options, callback) => {
    if (options.protocol !== 'https:') return callback(new Error('only TLS goes through the egress proxy'), null);
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const port = options.port === '' ? 443 : Number(options.port);
    openOperatorTunnel({ chain, host, port, totalMs, signal: AbortSignal.timeout(2 * totalMs) }).then(
      // cast: a tunnel is the socket that was dialled
      (stream) => overTls({ ...options, httpSocket: stream as Socket }, callback),
      (error: Error) => callback(error, null),
    );
  };
  return new Agent({ connect });
}
