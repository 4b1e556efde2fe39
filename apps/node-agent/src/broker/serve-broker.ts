import { chmod, rm } from 'node:fs/promises';
import { uptime } from 'node:os';
import type { Readable } from 'node:stream';
import { CodedError } from '@firecrew/base';
import { type CredentialBroker, createCredentialBroker } from '@firecrew/credential-broker';
import { checkSocketPath } from '@firecrew/link';
import { readUpstream } from '@firecrew/model-route';
import type { Logger } from 'pino';
import { type BrokerOrder, brokerOrderSchema, type RouteOrder } from './broker-messages.ts';
import { CredentialWatch } from './credential-watch.ts';

/** Bytes of one order: routes may carry certificates. */
const ORDER_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Serves shims on a Unix socket by the orders of a node agent, until these end. It listens once it knows routes and handles, so that it refuses
 * no handle of a turn that goes on. Rejects with `broker_order_invalid`, or what listening fails with.
 */
export async function serveBroker(socketPath: string, orders: Readable, log: Logger): Promise<void> {
  checkSocketPath(socketPath);
  const broker = createCredentialBroker({
    clock: () => uptime() * 1000,
    onCredentialRefused: (backend, status) => log.error({ backend, status }, 'the provider refused the credential of a model route'),
  });
  const watch = new CredentialWatch(broker, log);
  watch.start();
  const missing = new Set<BrokerOrder['t']>(['routes', 'handles']);
  for await (const line of linesOf(orders)) {
    const order = readOrder(line);
    if (order.t === 'routes') takeRoutes(broker, watch, order.routes);
    else {
      broker.setHandles(order.handles);
      watch.setInUse(new Set(order.handles.map(({ route }) => route)));
    }
    missing.delete(order.t);
    if (missing.size === 0 && !broker.server.listening) await listen(broker, socketPath);
  }
  broker.close();
}

function takeRoutes(broker: CredentialBroker, watch: CredentialWatch, routes: Readonly<Record<string, RouteOrder>>): void {
  for (const [name, { format, upstream, ca, header, features }] of Object.entries(routes)) {
    broker.setRoute(name, {
      format,
      features,
      upstream: readUpstream(upstream),
      ...(ca === null ? {} : { ca }),
      ...(header === null ? {} : { header }),
    });
  }
  watch.setRoutes(routes);
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

/** An error holds nothing of the order: it may hold a credential. */
function readOrder(line: string): BrokerOrder {
  const fault = (why: string) =>
    new CodedError('broker_order_invalid', `the node agent told its credential broker something that it does not understand: ${why}`, {
      action: 'Both come from one version; restart the node agent.',
    });
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw fault('no JSON');
  }
  const parsed = brokerOrderSchema.safeParse(value);
  if (!parsed.success) throw fault(parsed.error.issues.map(({ path, code }) => `${path.map(String).join('.')} (${code})`).join(', '));
  return parsed.data;
}

async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let held = '';
  stream.setEncoding('utf8');
  for await (const part of stream) {
    held += part as string;
    const lines = held.split('\n');
    held = lines.pop() ?? '';
    yield* lines;
    if (held.length > ORDER_MAX_BYTES)
      throw new CodedError('broker_order_invalid', `an order to the credential broker has more than ${ORDER_MAX_BYTES} bytes`);
  }
}
