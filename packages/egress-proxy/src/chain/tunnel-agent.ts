import type { ClientRequestArgs } from 'node:http';
import { Agent, type AgentOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { EGRESS_PROXY_LIMITS } from '../limits.ts';
import { type OperatorTunnel, openOperatorTunnel } from './open-operator-tunnel.ts';

type Callback = (error: Error | null, stream: Duplex) => void;

/** Where and how tunnels of an agent are opened; `totalMs` bounds the handshake in a tunnel, too. */
export type TunnelTarget = Omit<OperatorTunnel, 'signal'>;

/**
 * Connections over TLS to one host, each through a tunnel of its own of the operator's proxy. One is given out once its handshake is done, so that nothing of a
 * request was sent before. A tunnel that is not opened is a `ChainError` of its request.
 */
export class TunnelAgent extends Agent {
  readonly #target: TunnelTarget;
  readonly #stop = new AbortController();

  constructor(target: TunnelTarget, options: AgentOptions) {
    super(options);
    this.#target = target;
  }

  override createConnection(options: ClientRequestArgs, callback?: Callback): undefined {
    this.#open(options).then(
      (stream) => callback?.(null, stream),
      // cast: where there is an error there is no stream
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
    return undefined;
  }

  /** Ends idle connections, and those that are being opened. */
  override destroy(): void {
    this.#stop.abort(new Error('the connections were given up'));
    super.destroy();
  }

  async #open(options: ClientRequestArgs): Promise<Duplex> {
    const { signal } = this.#stop;
    const socket = await openOperatorTunnel({ ...this.#target, signal });
    const stream = super.createConnection({ ...options, ...{ socket } });
    if (stream === null || stream === undefined) throw new Error('the tunnel carries no TLS');
    const tooLate = Object.assign(new Error('the handshake took too long'), { code: 'ETIMEDOUT' });
    const late = setTimeout(() => stream.destroy(tooLate), this.#target.totalMs ?? EGRESS_PROXY_LIMITS.dialMs);
    const onAbort = (): void => void stream.destroy(new Error('the connections were given up'));
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        stream.once('secureConnect', resolve);
        stream.once('error', reject);
        stream.once('close', () => reject(new Error('the connection was closed before its handshake was done')));
      });
      return stream;
    } finally {
      clearTimeout(late);
      signal.removeEventListener('abort', onAbort);
    }
  }
}
