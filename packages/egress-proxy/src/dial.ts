import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Cut } from './cut.ts';
import { raceDeadline } from './deadline.ts';

/** What to dial. `address` was checked and is dialled as it is; `host` is for the log alone. */
export interface DialTarget {
  readonly host: string;
  readonly address: string;
  readonly family: 4 | 6;
  readonly port: number;
  /** Aborts when nobody waits any more; a connection that is made after that must be closed. */
  readonly signal: AbortSignal;
}

/** Opens a stream to one address, or throws. */
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

export type DialResult =
  | { readonly ok: true; readonly stream: Duplex; readonly address: string }
  | { readonly ok: false; readonly reason: 'dial_failed' | 'dial_timeout' | 'cancelled'; readonly address: string | undefined };

interface DialPlan {
  readonly dial: Dial;
  readonly host: string;
  readonly port: number;
  readonly addresses: readonly CheckedAddress[];
  readonly totalMs: number;
  readonly attemptMs: number;
  readonly cut: Cut;
  readonly monotonic: () => number;
}

/** Dials checked addresses one after the other until one answers; all attempts together take at most `totalMs`. */
export async function dialChecked(plan: DialPlan): Promise<DialResult> {
  const start = plan.monotonic();
  let timedOut = false;
  let last: string | undefined;
  for (const [index, target] of plan.addresses.entries()) {
    const left = plan.totalMs - (plan.monotonic() - start);
    if (left <= 0) return { ok: false, reason: 'dial_timeout', address: last };
    last = target.address;
    const isLast = index === plan.addresses.length - 1;
    const attempt = await dialOnce(plan, target, isLast ? left : Math.min(left, plan.attemptMs));
    if (attempt === 'cancelled') return { ok: false, reason: 'cancelled', address: last };
    if (attempt === 'timeout') timedOut = true;
    else if (attempt !== 'failed') return { ok: true, stream: attempt, address: target.address };
  }
  return { ok: false, reason: timedOut ? 'dial_timeout' : 'dial_failed', address: last };
}

async function dialOnce(plan: DialPlan, target: CheckedAddress, ms: number): Promise<Duplex | 'failed' | 'timeout' | 'cancelled'> {
  const abort = new AbortController();
  const work = Promise.resolve()
    .then(() => plan.dial({ ...target, host: plan.host, port: plan.port, signal: abort.signal }))
    .then((stream) => stream.on('error', () => {}));
  try {
    const raced = await raceDeadline(work, ms, plan.cut, (stream) => stream.destroy());
    if (raced.kind === 'done') return raced.value;
    abort.abort();
    return raced.kind === 'deadline' ? 'timeout' : 'cancelled';
  } catch {
    return 'failed';
  }
}
