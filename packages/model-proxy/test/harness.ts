import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrokerLimits, type BrokerRoute, type CredentialBroker, createCredentialBroker, newHandle } from '@firecrew/credential-broker';
import { readUpstream, type Upstream } from '@firecrew/model-route';
import { createModelProxy, type ModelCallLine, type ModelProxy, type ModelProxyOptions, type RouteRules } from '../src/index.ts';

const pem = (name: string) => readFileSync(new URL(`./tls/${name}.pem`, import.meta.url), 'utf8');
/** The credential of the host in these tests. */
export const SECRET = 'sk-host-0123456789/abc+def=XYZ';
const UPSTREAM_HOST = 'api.model.test';

/** One request that reached the upstream. */
export interface Arrival {
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Settles when the upstream's side of the request is over. */
  readonly isClosed: () => boolean;
}

export interface HarnessOptions {
  readonly rules?: Partial<RouteRules>;
  /** What the broker knows of the route. */
  readonly route?: Partial<BrokerRoute>;
  readonly brokerLimits?: Partial<BrokerLimits>;
  /** Absent: one that the broker knows; undefined: none that the proxy is told of. */
  readonly handle?: string | undefined;
  /** Null for a route without one; undefined for one that has not come. */
  readonly credential?: string | null | undefined;
  readonly answer?: (arrival: Arrival, response: ServerResponse) => void;
  readonly limits?: ModelProxyOptions['limits'];
  readonly leaseValid?: () => boolean;
  readonly audit?: (line: ModelCallLine) => void;
  readonly isClosed?: boolean;
  readonly upstreamHost?: string;
}

/** A route behind a loopback socket, with its broker and a TLS upstream, whose name a fake resolver knows. */
export interface Harness {
  readonly proxy: ModelProxy;
  readonly broker: CredentialBroker;
  readonly handle: string;
  /** Socket of the broker. */
  readonly socketPath: string;
  readonly upstream: Upstream;
  readonly ca: string;
  readonly port: number;
  readonly lines: ModelCallLine[];
  readonly arrivals: Arrival[];
  /** Names that were looked up. */
  readonly lookedUp: string[];
  readonly budgetReached: () => number;
  /** Sends bytes on a connection of its own, and gives all that came back when it has ended. */
  send(bytes: string | Buffer): Promise<string>;
  connect(): Client;
  stop(): Promise<void>;
}

export interface Client {
  readonly socket: Socket;
  text(): string;
  readonly closed: () => boolean;
}

/** Waits for a condition, looking again on every turn of the timers. */
export async function until(condition: () => boolean, what: string, ms = 20_000): Promise<void> {
  const end = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`did not happen in ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export const answerWell = (_arrival: Arrival, response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ type: 'message', usage: { input_tokens: 3, output_tokens: 2 } }));
};

async function startUpstream(arrivals: Arrival[], answer: NonNullable<HarnessOptions['answer']>) {
  const server = createTlsServer({ cert: pem('test-only-cert'), key: pem('test-only-key') }, (request, response) => {
    const parts: Buffer[] = [];
    let isClosed = false;
    response.once('close', () => {
      isClosed = true;
    });
    request.on('error', () => undefined);
    request.on('data', (part: Buffer) => parts.push(part));
    request.once('end', () => {
      const { method = '', url = '', rawHeaders, headers } = request;
      const arrival = { method, url, rawHeaders, headers, body: Buffer.concat(parts).toString(), isClosed: () => isClosed };
      arrivals.push(arrival);
      answer(arrival, response);
    });
  });
  server.on('upgrade', (_request, socket: Socket) =>
    socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const arrivals: Arrival[] = [];
  const lines: ModelCallLine[] = [];
  const lookedUp: string[] = [];
  const clients: Socket[] = [];
  let reached = 0;
  const upstream = await startUpstream(arrivals, options.answer ?? answerWell);
  const format = options.rules?.format ?? 'anthropic_messages';
  const header = options.rules?.header;
  const handle = newHandle();
  const folder = await mkdtemp(join(tmpdir(), 'fc-broker-'));
  const socketPath = join(folder, 'b.sock');
  const broker = createCredentialBroker({
    lookup: (name, _options, done) => {
      lookedUp.push(name);
      done(null, [{ address: '127.0.0.1', family: 4 }]);
    },
    ...(options.brokerLimits === undefined ? {} : { limits: options.brokerLimits }),
  });
  const target = { ...readUpstream(`https://${options.upstreamHost ?? UPSTREAM_HOST}`), port: upstream.port };
  broker.setRoute('r', {
    format,
    upstream: target,
    ca: pem('test-only-cert'),
    ...(header === undefined ? {} : { header }),
    ...(options.rules?.features === undefined ? {} : { features: options.rules.features }),
    ...options.route,
  });
  const credential = 'credential' in options ? options.credential : SECRET;
  if (credential !== undefined) broker.setCredential('r', credential);
  broker.setHandles([{ handle, route: 'r', validUntilMs: Number.POSITIVE_INFINITY }]);
  broker.server.listen(socketPath);
  await once(broker.server, 'listening');
  const proxy = createModelProxy({
    broker: socketPath,
    rules: {
      format,
      hasCredential: credential !== null,
      features: [],
      models: null,
      outputCap: null,
      budget: { tokens: null, micros: null },
      prices: null,
      ...options.rules,
    },
    audit: (line) => {
      options.audit?.(line);
      lines.push(line);
    },
    onBudgetReached: () => {
      reached += 1;
    },
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    ...(options.leaseValid === undefined ? {} : { leaseValid: options.leaseValid }),
  });
  const told = 'handle' in options ? options.handle : handle;
  if (told !== undefined) proxy.setHandle(told);
  if (options.isClosed !== true) proxy.open();
  const front = createServer({ allowHalfOpen: true }, (socket) => proxy.handle(socket));
  front.listen(0, '127.0.0.1');
  await once(front, 'listening');
  const { port } = front.address() as AddressInfo;
  const connectClient = (): Client => {
    const socket = connect({ port, host: '127.0.0.1' });
    clients.push(socket);
    const parts: Buffer[] = [];
    let isClosed = false;
    socket.on('data', (part) => parts.push(part));
    socket.on('error', () => undefined);
    socket.once('close', () => {
      isClosed = true;
    });
    return { socket, text: () => Buffer.concat(parts).toString('latin1'), closed: () => isClosed };
  };
  return {
    proxy,
    broker,
    handle,
    socketPath,
    upstream: target,
    ca: pem('test-only-cert'),
    port,
    lines,
    arrivals,
    lookedUp,
    budgetReached: () => reached,
    connect: connectClient,
    async send(bytes) {
      const client = connectClient();
      client.socket.write(bytes);
      await until(client.closed, 'the end of the connection');
      return client.text();
    },
    async stop() {
      for (const socket of clients) socket.destroy();
      proxy.close();
      broker.close();
      front.close();
      upstream.server.closeAllConnections();
      upstream.server.close();
      await once(upstream.server, 'close');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export const BODY = { model: 'm-1', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] };

/** A request of a guest as bytes; the connection ends with its answer. */
export function requestBytes(
  body: unknown = BODY,
  { path = '/v1/messages', method = 'POST', headers = [] as readonly string[], isLast = true } = {},
): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'host: x',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    ...headers,
    ...(isLast ? ['connection: close'] : []),
  ];
  return `${lines.join('\r\n')}\r\n\r\n${text}`;
}

/** Status and body of an answer; chunks are joined. */
export function parseAnswer(text: string): { readonly status: number; readonly head: string; readonly body: string } {
  const at = text.indexOf('\r\n\r\n');
  const head = text.slice(0, at);
  const rest = text.slice(at + 4);
  if (!/transfer-encoding: chunked/i.test(head)) return { status: Number(head.slice(9, 12)), head, body: rest };
  let body = '';
  for (let left = rest; left !== ''; ) {
    const end = left.indexOf('\r\n');
    const length = Number.parseInt(left.slice(0, end), 16);
    if (!(length > 0)) break;
    body += left.slice(end + 2, end + 2 + length);
    left = left.slice(end + 2 + length + 2);
  }
  return { status: Number(head.slice(9, 12)), head, body };
}
