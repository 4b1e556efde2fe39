import type { EgressProxySettings } from '@firecrew/backend';
import { messageOf } from '@firecrew/base';
import { readChainCredential } from '@firecrew/egress-proxy';
import type { Logger } from 'pino';
import type { ProxyOrder } from '../broker/broker-messages.ts';

/** What the broker has to know of the operator's proxy. A file of its credential is the broker's to read; a variable is one of this process. */
export async function proxyOrderOf(
  settings: EgressProxySettings | null,
  env: Readonly<Record<string, string | undefined>>,
  log: Logger,
): Promise<ProxyOrder | null> {
  if (settings === null) return null;
  const { url, mode, noProxy, credential } = settings;
  if (credential === null || 'file' in credential) return { url, mode, noProxy, credential };
  try {
    return { url, mode, noProxy, credential: { value: await readChainCredential(credential, env) } };
  } catch (error) {
    log.error({ code: 'chain_credential_unreadable', detail: messageOf(error) }, 'the egress proxy has no usable credential');
    return { url, mode, noProxy, credential: { missing: true } };
  }
}
