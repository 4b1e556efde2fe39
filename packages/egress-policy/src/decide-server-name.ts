import { normaliseHost } from './host-name.ts';
import type { ServerNameDenial } from './reasons.ts';

/** The verdict on the server name of a ClientHello. */
export type ServerNameDecision =
  | { readonly verdict: 'allowed'; readonly reason: 'server_name_matches' }
  | { readonly verdict: 'denied'; readonly reason: ServerNameDenial };

/** Whether a tunnel to `host` (normalised) may carry a ClientHello for `serverName`: the names must be the same one, and there must be one. */
export function decideServerName(input: { readonly host: string; readonly serverName: string | undefined }): ServerNameDecision {
  if (input.serverName === undefined) return { verdict: 'denied', reason: 'no_server_name' };
  const name = normaliseHost(input.serverName);
  return name.ok && name.host === input.host
    ? { verdict: 'allowed', reason: 'server_name_matches' }
    : { verdict: 'denied', reason: 'server_name_mismatch' };
}
