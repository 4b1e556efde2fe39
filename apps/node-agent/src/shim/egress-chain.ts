import type { EgressProxySettings } from '@firecrew/backend';
import { type ChainOptions, makeChain } from '@firecrew/egress-proxy';

type Environment = Record<string, string | undefined>;

/** What a shim needs in its environment for the operator's proxy: the one variable that holds its credential, where one does. */
export function chainVariable(settings: EgressProxySettings | null, env: Readonly<Environment>): Record<string, string> {
  const name = variableOf(settings);
  const value = name === undefined ? undefined : env[name];
  return name === undefined || value === undefined ? {} : { [name]: value };
}

/** The operator's proxy. A variable that holds its credential is taken out of `env`: nothing that a shim starts needs it. Throws `EgressConfigError`. */
export function takeChain(settings: EgressProxySettings | null, env: Environment): ChainOptions | undefined {
  if (settings === null) return undefined;
  const taken = chainVariable(settings, env);
  for (const name of Object.keys(taken)) delete env[name];
  return makeChain(settings, taken);
}

function variableOf(settings: EgressProxySettings | null): string | undefined {
  const place = settings?.credential ?? null;
  return place !== null && 'variable' in place ? place.variable : undefined;
}
