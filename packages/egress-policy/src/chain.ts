import { parsePort } from './allow-entry.ts';
import { type ConfigProblem, EgressConfigError } from './config-error.ts';
import { normaliseHost } from './host-name.ts';
import { isUnder } from './intersect-rules.ts';
import { type IpAddress, parseIp } from './ip-address.ts';
import { findSpecialRange } from './special-ranges.ts';

/** How a proxy of the operator's is asked: for the address that was judged, or for the name, which it then resolves itself. */
export const CHAIN_MODES = ['address', 'name-only'] as const;
export type ChainMode = (typeof CHAIN_MODES)[number];

/** What an operator writes to have everything leave through a proxy of their own. */
export interface ChainInput {
  /** `http://HOST:PORT`; a credential has no place in it. */
  readonly url: string;
  readonly mode?: ChainMode | undefined;
  /** Hosts that are dialled directly; a leading dot covers the domain and its subdomains. */
  readonly noProxy?: readonly string[] | undefined;
}

/** The operator's proxy in parsed form. `host` is a normalised name or the canonical text of an address. */
export interface Chain {
  readonly host: string;
  readonly port: number;
  readonly mode: ChainMode;
  readonly direct: readonly { readonly host: string; readonly subdomains: boolean }[];
}

/** Most entries of `noProxy`. */
export const NO_PROXY_MAX = 256;

const URL_SHAPE = /^http:\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})\/?$/;

// The text is not repeated: an operator may have written a credential into it.
const BAD_URL: ConfigProblem = {
  entry: 'url',
  reason: 'bad_proxy',
  message: 'the URL of the proxy: write http://HOST:PORT; a credential is named apart',
};

/** Reads the operator's proxy; throws `EgressConfigError` listing every fault. No message holds the URL. */
export function loadChain({ url, mode = 'address', noProxy = [] }: ChainInput): Chain {
  const problems: ConfigProblem[] = [];
  const refuse = (entry: string, hint: string): void => {
    problems.push({ entry, reason: 'bad_proxy', message: `${JSON.stringify(entry)}: ${hint}` });
  };
  const [, bracketed, plain = '', portText = ''] = URL_SHAPE.exec(url) ?? [];
  const port = parsePort(portText);
  const host = bracketed === undefined ? proxyHost(plain) : parseIp(bracketed)?.text;
  if (port === undefined || host === undefined) problems.push(BAD_URL);
  if (noProxy.length > NO_PROXY_MAX) refuse('noProxy', `at most ${NO_PROXY_MAX} hosts go past the proxy`);
  const direct = noProxy.flatMap((entry) => {
    const subdomains = entry.startsWith('.');
    const name = normaliseHost(subdomains ? entry.slice(1) : entry);
    if (name.ok) return [{ host: name.host, subdomains }];
    refuse(entry, `not a host name (${name.reason})`);
    return [];
  });
  if (problems.length > 0 || port === undefined || host === undefined) throw new EgressConfigError(problems);
  return { host, port, mode, direct };
}

function proxyHost(text: string): string | undefined {
  const name = normaliseHost(text);
  return name.ok ? name.host : parseIp(text)?.text;
}

/**
 * How a normalised name is reached: `direct`, `proxy` (at the address that was judged) or `name-only` (the proxy resolves it, so no address can be
 * judged). `proxy_itself` is a destination for nobody.
 */
export function decideWay(chain: Chain | undefined, host: string): 'direct' | 'proxy' | 'name-only' | 'proxy_itself' {
  if (chain === undefined) return 'direct';
  if (host === chain.host) return 'proxy_itself';
  if (chain.direct.some((entry) => entry.host === host || (entry.subdomains && isUnder(host, entry.host)))) return 'direct';
  return chain.mode === 'name-only' ? 'name-only' : 'proxy';
}

/**
 * How what the operator named themselves is reached, such as an upstream of models or the server of a node. There is no address to judge, so the proxy is
 * asked for the host as it is written, in either mode. It is not asked for this host, for its own, nor for what goes past it. `host` is that of a URL, with or
 * without brackets.
 */
export function decideOperatorWay(chain: Chain | undefined, host: string): 'direct' | 'proxy' {
  if (chain === undefined) return 'direct';
  const bare = host.replace(/^\[|\]$/g, '');
  const address = parseIp(bare);
  if (address !== undefined) return isOwn(address) || address.text === chain.host ? 'direct' : 'proxy';
  const name = normaliseHost(bare);
  // What is no host name is no name that a proxy could look up either.
  if (!name.ok || name.host === 'localhost' || isUnder(name.host, 'localhost')) return 'direct';
  const way = decideWay(chain, name.host);
  return way === 'direct' || way === 'proxy_itself' ? 'direct' : 'proxy';
}

/** The unspecified address leads to this host, too. */
function isOwn(address: IpAddress): boolean {
  const reason = findSpecialRange(address)?.reason;
  return reason === 'loopback_address' || reason === 'unspecified_address';
}
