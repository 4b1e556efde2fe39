import { type AllowRule, decideWay, type EgressPolicy, type TunnelProtocol } from '@firecrew/egress-policy';
import { type ChainContext, type ChainOptions, dialAddress, dialName, findProxyAddresses, findProxyItself } from './chain/chain-dial.ts';
import type { Cut } from './cut.ts';
import type { CheckedAddress, Dial } from './dial.ts';
import { type DialResult, dialChecked } from './dial-checked.ts';
import { findAddresses } from './find-addresses.ts';
import type { EgressProxyLimits } from './limits.ts';
import type { LookUps } from './look-up.ts';
import type { Refusal } from './refusal.ts';

/** How a tunnel leaves the host, where not directly: through the operator's proxy to an address that was judged, or by name alone. */
export type Via = 'proxy' | 'name-only';

/** How a target is reached, or why it is not. `addresses` were all judged; there are none where the operator's proxy resolves the name. */
export type Way =
  | { readonly kind: 'found'; readonly via?: Via; readonly addresses: readonly CheckedAddress[]; dial(cut: Cut): Promise<DialResult> }
  | { readonly kind: 'refused'; readonly via?: Via; readonly refusal: Pick<Refusal, 'verdict' | 'reason' | 'address' | 'rule'> }
  | { readonly kind: 'cancelled' };

export interface WayContext {
  readonly policy: () => EgressPolicy;
  readonly dial: Dial;
  readonly lookUps: LookUps;
  readonly limits: EgressProxyLimits;
  readonly chain: ChainOptions | undefined;
}

interface Target extends Pick<AllowRule, 'host' | 'port'> {
  readonly protocol: TunnelProtocol;
}

/** Looks up and judges what is needed to reach an allowed target. Nothing is dialled before `dial` is called. */
export async function findWay(context: WayContext, target: Target, cut: Cut): Promise<Way> {
  const { chain, limits } = context;
  const way = decideWay(chain?.chain, target.host);
  const refuse = (reason: Refusal['reason'], address?: string): Way => {
    const verdict = reason === 'chain_itself' ? 'denied' : 'unreachable';
    return { kind: 'refused', ...viaOf(way), refusal: { verdict, reason, ...(address === undefined ? {} : { address }) } };
  };
  if (way === 'proxy_itself') return refuse('chain_itself');
  const chained: ChainContext | undefined = chain === undefined ? undefined : { ...context, options: chain };
  const proxy = chained === undefined ? [] : await findProxyAddresses(chained, cut);
  if (cut.isMade) return { kind: 'cancelled' };
  // Also for what goes past the proxy: it must not be led to it, which cannot be judged without its addresses.
  if (proxy === undefined) return refuse('chain_unreachable');
  const plan = { host: target.host, port: target.port, totalMs: limits.dialMs };
  if (chained !== undefined && way === 'name-only') {
    const dial = dialName(chained, target);
    const race = (by: Cut) => dialChecked({ ...plan, dial, addresses: proxy, staggerMs: limits.dialStaggerMs, cut: by });
    return { kind: 'found', via: way, addresses: [], dial: async (by) => ofChain(await race(by)) };
  }
  const found = await findAddresses({ ...context, host: target.host, lookupMs: limits.lookupMs, addressesMax: limits.addresses, cut });
  if (found.kind === 'refused') return { ...found, ...viaOf(way) };
  if (found.kind === 'cancelled') return found;
  const { addresses } = found;
  const itself = chained === undefined ? undefined : findProxyItself(addresses, target.host, proxy);
  if (itself !== undefined) return refuse('chain_itself', itself);
  if (chained === undefined || way === 'direct') {
    const direct = { ...plan, dial: context.dial, addresses, staggerMs: limits.dialStaggerMs };
    return { kind: 'found', addresses, dial: (by) => dialChecked({ ...direct, cut: by }) };
  }
  const dial = dialAddress(chained, target, proxy);
  const race = (by: Cut) => dialChecked({ ...plan, dial, addresses, staggerMs: limits.chainStaggerMs, cut: by });
  return { kind: 'found', via: 'proxy', addresses, dial: async (by) => ofChain(await race(by)) };
}

function viaOf(way: ReturnType<typeof decideWay>): { readonly via?: Via } {
  return way === 'proxy' || way === 'name-only' ? { via: way } : {};
}

/** What failed between the proxy and us is told apart from what failed beyond it. The address in an audit is that of the target, never the proxy's. */
function ofChain(result: DialResult): DialResult {
  if (result.ok) return result;
  if (result.reason === 'dial_failed') return { ...result, reason: 'chain_unreachable' };
  return result.reason === 'dial_timeout' ? { ...result, reason: 'chain_timeout' } : result;
}
