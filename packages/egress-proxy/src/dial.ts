import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ProxyReason } from './reasons.ts';

/** What to dial. `address` was checked and is dialled as it is; `host` is for the log alone. */
export interface DialTarget {
  readonly host: string;
  readonly address: string;
  readonly family: 4 | 6;
  readonly port: number;
  /** Aborts when nobody waits any more; a connection that is made after that must be closed. */
  readonly signal: AbortSignal;
}

/** Opens a stream to one address, or throws; a `DialFault` says more than that it failed. */
export type Dial = (target: DialTarget) => Promise<Duplex>;

const KEEP_ALIVE_DELAY_MS = 60_000;

/** A TCP connection that keeps half-closed sides open. */
export const defaultDial: Dial = ({ address, family, port, signal }) =>
  new Promise((resolve, reject) => {
    const socket = connect({
      host: address,
      family,
      port,
      allowHalfOpen: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
    });
    const onAbort = (): void => {
      socket.destroy();
      reject(new Error('dial given up'));
    };
    // The handler stays for the life of the socket: an error between the connect and the next reader must not be unhandled.
    socket.on('error', reject);
    socket.once('connect', () => {
      signal.removeEventListener('abort', onAbort);
      resolve(socket);
    });
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
  });

/** One checked address. */
export interface CheckedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** A dial that failed for a reason of its own. `isFinal`: another address would fare no better, so none is tried. */
export class DialFault extends Error {
  readonly reason: ProxyReason;
  readonly isFinal: boolean;

  constructor(reason: ProxyReason, isFinal: boolean) {
    super(reason);
    this.name = 'DialFault';
    this.reason = reason;
    this.isFinal = isFinal;
  }
}
