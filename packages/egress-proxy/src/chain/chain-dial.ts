import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Chain, createPolicy, decideAddress, type EgressPolicy, parseIp, type TunnelProtocol } from '@firecrew/egress-policy';
import { Cut } from '../cut.ts';
import { raceDeadline } from '../deadline.ts';
import { type CheckedAddress, type Dial, DialFault, type DialTarget } from '../dial.ts';
import { dialChecked } from '../dial-checked.ts';
import type { EgressProxyLimits } from '../limits.ts';
import type { LookUps } from '../look-up.ts';
import { openChained } from './open-chained.ts';

/** The operator's own proxy, through which everything leaves but what goes past it. */
export interface ChainOptions {
  readonly chain: Chain;
  /** `user:password` as it is now; it rejects where there should be one and is not. Absent: the proxy wants none. */
  readonly credential?: () => Promise<string>;
}

export interface ChainContext {
  readonly options: ChainOptions;
  readonly dial: Dial;
  readonly lookUps: LookUps;
  readonly limits: EgressProxyLimits;
}

/** The addresses of the proxy as they are now. They may be private: the operator named it. Undefined where they cannot be found out. */
export async function findProxyAddresses(
  { options, lookUps, limits }: ChainContext,
  cut: Cut,
): Promise<readonly CheckedAddress[] | undefined> {
  const { host } = options.chain;
  if (isIP(host) !== 0) return checked([host]);
  const lookUp = lookUps.start(host);
  try {
    const raced = await raceDeadline(lookUp.answer, limits.lookupMs, cut);
    const found = raced.kind === 'done' ? checked(raced.value ?? []) : [];
    return found.length === 0 || found.length > limits.addresses ? undefined : found;
  } catch {
    return undefined;
  } finally {
    lookUp.release();
  }
}

function checked(texts: readonly string[]): CheckedAddress[] {
  return texts.flatMap((text) => {
    const address = parseIp(text);
    return address === undefined ? [] : [{ address: address.text, family: address.family }];
  });
}

/** The first of `addresses` that is one of the proxy's own, in whatever form. No rule opens it. */
export function findProxyItself(addresses: readonly CheckedAddress[], host: string, proxy: readonly CheckedAddress[]): string | undefined {
  const policy: EgressPolicy = createPolicy({ rules: [], ownAddresses: proxy.map(({ address }) => address) });
  const isProxy = ({ address }: CheckedAddress): boolean => {
    const decision = decideAddress({ policy, host, address });
    return decision.verdict === 'denied' && (decision.reason === 'own_address' || decision.reason === 'translated_address');
  };
  return addresses.find(isProxy)?.address;
}

/** What is asked of the proxy. */
interface ChainedTarget {
  readonly host: string;
  readonly port: number;
  readonly protocol: TunnelProtocol;
}

/** Dials an address that was judged, through the proxy at one of its addresses. */
export function dialAddress(context: ChainContext, target: ChainedTarget, proxy: readonly CheckedAddress[]): Dial {
  return async ({ address, family, signal }) => {
    const stream = await dialProxy(context, proxy, signal);
    return await ask(context, target, stream, `${family === 6 ? `[${address}]` : address}:${target.port}`, signal);
  };
}

/** Dials one address of the proxy, and asks it for the name. */
export function dialName(context: ChainContext, target: ChainedTarget): Dial {
  return async (proxy: DialTarget) => {
    const stream = await context.dial({ ...proxy, port: context.options.chain.port });
    return await ask(context, target, stream, `${target.host}:${target.port}`, proxy.signal);
  };
}

async function dialProxy(
  { dial, options, limits }: ChainContext,
  addresses: readonly CheckedAddress[],
  signal: AbortSignal,
): Promise<Duplex> {
  const { host, port } = options.chain;
  const cut = new Cut();
  const onAbort = () => cut.make();
  signal.addEventListener('abort', onAbort, { once: true });
  const dialled = await dialChecked({ dial, host, port, addresses, totalMs: limits.dialMs, staggerMs: limits.dialStaggerMs, cut });
  signal.removeEventListener('abort', onAbort);
  if (!dialled.ok) throw new DialFault('chain_unreachable', true);
  return dialled.stream;
}

async function ask(
  { options }: ChainContext,
  { protocol }: ChainedTarget,
  stream: Duplex,
  authority: string,
  signal: AbortSignal,
): Promise<Duplex> {
  stream.on('error', () => {});
  let credential: string | undefined;
  try {
    credential = await options.credential?.();
  } catch {
    stream.destroy();
    throw new DialFault('chain_credential_unreadable', true);
  }
  return await openChained({ authority, stream, credential, protocol, signal });
}
