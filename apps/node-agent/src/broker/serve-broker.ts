import { chmod, rm } from 'node:fs/promises';
import { uptime } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { CodedError } from '@firecrew/base';
import { type CredentialBroker, createCredentialBroker } from '@firecrew/credential-broker';
import { decideOperatorWay } from '@firecrew/egress-policy';
import type { ChainOptions } from '@firecrew/egress-proxy';
import { checkSocketPath } from '@firecrew/link';
import { readUpstream } from '@firecrew/model-route';
import type { Logger } from 'pino';
import { type BrokerOrder, type BrokerReport, brokerOrderSchema, credentialDigest } from './broker-messages.ts';
import { chainOf } from './chain-of-order.ts';
import { CredentialWatch } from './credential-watch.ts';
import { readMessages } from './read-messages.ts';

/** Characters of one order: routes may carry certificates. */
const ORDER_MAX_CHARS = 64 * 1024 * 1024;

/**
 * Serves shims on a Unix socket by the orders of a node agent, until these end. It listens once it knows routes and handles, so that it refuses
 * no handle of a turn that goes on; what it has to tell goes to `reports`. Rejects with `broker_order_invalid`, or what listening fails with.
 */
export async function serveBroker(socketPath: string, orders: Readable, reports: Writable, log: Logger): Promise<void> {
  checkSocketPath(socketPath);
  // Whoever does not read any more is gone, and with them the orders.
  reports.on('error', () => undefined);
  const report = (told: BrokerReport) => void reports.write(`${JSON.stringify(told)}\n`);
  const broker = createCredentialBroker({
    clock: () => uptime() * 1000,
    onCredentialRefused: (backend, status) => log.error({ backend, status }, 'the provider refused the credential of a model route'),
    onRenewalWanted: (route, credential) => report({ t: 'credential_refused', route, digest: credentialDigest(credential) }),
  });
  const watch = new CredentialWatch(broker, log);
  watch.start();
  const missing = new Set<BrokerOrder['t']>(['routes', 'handles']);
  const rules = { schema: brokerOrderSchema, maxChars: ORDER_MAX_CHARS, fault: orderFault };
  for await (const order of readMessages(orders, rules)) {
    if (order.t === 'routes') takeRoutes(broker, watch, order);
    else {
      broker.setHandles(order.handles);
      watch.setInUse(new Set(order.handles.map(({ route }) => route)));
    }
    missing.delete(order.t);
    if (missing.size === 0 && !broker.server.listening) await listen(broker, socketPath);
  }
  broker.close();
}

type RoutesOrder = Extract<BrokerOrder, { readonly t: 'routes' }>;

function takeRoutes(broker: CredentialBroker, watch: CredentialWatch, { proxy, routes }: RoutesOrder): void {
  const chain = chainOf(proxy);
  for (const [name, { format, upstream: url, ca, header, features, viaProxy }] of Object.entries(routes)) {
    const upstream = readUpstream(url);
    broker.setRoute(name, {
      format,
      features,
      upstream,
      ...(viaProxy ? wayOf(chain, upstream.host) : {}),
      ...(ca === null ? {} : { ca }),
      ...(header === null ? {} : { header }),
    });
  }
  watch.setRoutes(routes);
}

function wayOf(chain: ChainOptions | undefined, host: string): { readonly chain?: ChainOptions } {
  return chain !== undefined && decideOperatorWay(chain.chain, host) === 'proxy' ? { chain } : {};
}

/** Takes the place of the socket of a broker that is gone. The folder belongs to this account alone. */
async function listen({ server }: CredentialBroker, socketPath: string): Promise<void> {
  await rm(socketPath, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, () => {
      server.off('error', reject);
      resolve();
    });
  });
  await chmod(socketPath, 0o600);
}

function orderFault(why: string): CodedError {
  return new CodedError('broker_order_invalid', `the node agent told its credential broker something that it does not understand: ${why}`, {
    action: 'Both come from one version; restart the node agent.',
  });
}
