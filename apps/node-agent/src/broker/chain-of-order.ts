import { loadChain } from '@firecrew/egress-policy';
import { type ChainOptions, readChainCredential } from '@firecrew/egress-proxy';
import type { ProxyOrder } from './broker-messages.ts';

/** The operator's proxy as a broker uses it. A file of its credential is read by the broker, at each tunnel; undefined where there is no proxy. */
export function chainOf(proxy: ProxyOrder | null): ChainOptions | undefined {
  if (proxy === null) return undefined;
  const { credential } = proxy;
  const chain = loadChain(proxy);
  if (credential === null) return { chain };
  if ('file' in credential) return { chain, credential: () => readChainCredential(credential, {}) };
  if ('value' in credential) return { chain, credential: async () => credential.value };
  return { chain, credential: () => Promise.reject(new Error('the node agent has no credential of the egress proxy')) };
}
