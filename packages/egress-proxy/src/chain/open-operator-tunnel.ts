import type { Duplex } from 'node:stream';
import { Cut } from '../cut.ts';
import { type Dial, type DialFault, defaultDial } from '../dial.ts';
import { dialChecked } from '../dial-checked.ts';
import { EGRESS_PROXY_LIMITS } from '../limits.ts';
import { defaultResolve, LookUps, type Resolve } from '../look-up.ts';
import { type ChainContext, type ChainOptions, dialName, findProxyAddresses } from './chain-dial.ts';
import { CHAIN_REASONS, ChainError, type ChainReason } from './chain-reasons.ts';

/** A tunnel to something that the operator named themselves, where TLS is to be spoken. */
export interface OperatorTunnel {
  readonly chain: ChainOptions;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Aborts when nobody waits any more; the tunnel is then none of anybody's. */
  readonly signal: AbortSignal;
  /** Look-up, dial and answer of the proxy together, in `ms`; default: the bound of a dial. */
  readonly totalMs?: number;
  readonly dial?: Dial;
  readonly resolve?: Resolve;
}

/**
 * Opens a tunnel through the operator's proxy, which is asked for the host as it is written: there is no address to judge, and whoever is at the other end
 * has to prove its name by TLS. Throws `ChainError`, or the reason of `signal`.
 */
export async function openOperatorTunnel(tunnel: OperatorTunnel): Promise<Duplex> {
  const { chain, host, port, signal, totalMs = EGRESS_PROXY_LIMITS.dialMs, dial = defaultDial, resolve = defaultResolve } = tunnel;
  signal.throwIfAborted();
  const fault = (reason: ChainReason) => new ChainError(reason, `${host}:${port}`);
  const limits = { ...EGRESS_PROXY_LIMITS, lookupMs: totalMs, dialMs: totalMs };
  const context: ChainContext = { options: chain, dial, lookUps: new LookUps(resolve, 1), limits };
  const cut = new Cut();
  const onAbort = (): void => cut.make();
  signal.addEventListener('abort', onAbort, { once: true });
  const late = setTimeout(() => cut.make(), totalMs);
  try {
    const addresses = await findProxyAddresses(context, cut);
    if (addresses !== undefined && !cut.isMade) {
      const target = { host: host.includes(':') ? `[${host}]` : host, port, protocol: 'tls' } as const;
      const plan = { host, port, addresses, totalMs, staggerMs: limits.dialStaggerMs, cut };
      const dialled = await dialChecked({ ...plan, dial: dialName(context, target) });
      if (dialled.ok) return dialled.stream;
      if (dialled.reason !== 'cancelled') throw fault(chainReasonOf(dialled.reason));
    }
    signal.throwIfAborted();
    throw fault(cut.isMade ? 'chain_timeout' : 'chain_unreachable');
  } finally {
    clearTimeout(late);
    signal.removeEventListener('abort', onAbort);
  }
}

function chainReasonOf(reason: DialFault['reason']): ChainReason {
  return CHAIN_REASONS.find((known) => known === reason) ?? (reason === 'dial_timeout' ? 'chain_timeout' : 'chain_unreachable');
}
