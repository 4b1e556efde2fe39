import { type ChainInput, loadChain } from '@firecrew/egress-policy';
import type { ChainOptions } from './chain-dial.ts';
import { type ChainCredentialSource, readChainCredential } from './read-chain-credential.ts';

/** The operator's proxy as services are configured with it. */
export interface ChainSettings extends ChainInput {
  readonly credential: ChainCredentialSource | null;
}

/** The options of a proxy that chains; its credential is read at each use. Throws `EgressConfigError`. */
export function makeChain(settings: ChainSettings, env: Readonly<Record<string, string | undefined>>): ChainOptions {
  const { credential } = settings;
  const chain = loadChain(settings);
  return credential === null ? { chain } : { chain, credential: () => readChainCredential(credential, env) };
}
