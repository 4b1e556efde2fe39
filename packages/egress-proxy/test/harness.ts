import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import {
  type AddressRuleInput,
  type AllowEntry,
  createPolicy,
  type EgressBudgetsInput,
  type EgressPolicy,
  loadAllowList,
} from '@firecrew/egress-policy';
import {
  type ChainOptions,
  createEgressProxy,
  type DialTarget,
  defaultDial,
  type EgressAuditLine,
  type EgressProxy,
  type EgressProxyLimits,
} from '../src/index.ts';

export interface HarnessOptions {
  readonly allow?: readonly AllowEntry[];
  readonly addressRules?: readonly AddressRuleInput[];
  readonly ownAddresses?: readonly string[];
  readonly limits?: Partial<EgressProxyLimits>;
  readonly budgets?: EgressBudgetsInput;
  readonly chain?: ChainOptions;
  /** Answers look-up number `call`, from 0. */
  readonly resolve?: (host: string, call: number) => Promise<readonly string[]> | readonly string[];
  /** Called before a dial; it may throw, or never settle. */
  readonly beforeDial?: (target: DialTarget) => Promise<void> | void;
  readonly audit?: (line: EgressAuditLine) => Promise<void> | void;
  /** In place of `audit`: writes a line before it returns, or throws. */
  readonly auditNow?: (line: EgressAuditLine) => void;
  readonly leaseValid?: () => boolean;
  /** What the upstream does with a connection. */
  readonly upstream?: (socket: Socket) => void;
}

/** A public address that the fake dialler leads to the upstream of the test. */
export const PUBLIC_V4 = '93.184.216.34';

/** A proxy behind a loopback socket, with a fake resolver, and a dialler that leads every address to one loopback upstream. */
export interface Harness {
  readonly proxy: EgressProxy;
  readonly policy: EgressPolicy;
  readonly port: number;
  readonly upstreamPort: number;
  readonly lines: EgressAuditLine[];
  readonly lookedUp: string[];
  readonly dialled: string[];
  /** Connections that reached the upstream, with what they sent. */
  readonly arrivals: { readonly socket: Socket; readonly chunks: Buffer[] }[];
  /** The proxy's side of the guest connections. */
  readonly guestSides: Socket[];
  connect(): Client;
  stop(): Promise<void>;
}

/** One guest connection under test. */
export interface Client {
  readonly socket: Socket;
  text(): string;
  bytes(): Buffer;
  readonly closed: () => boolean;
  readonly ended: () => boolean;
}

/** Waits for a condition, looking again on every turn of the timers. */
export async function until(condition: () => boolean, what: string, ms = 20_000): Promise<void> {
  const end = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`did not happen in ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export function makeClient(port: number): Client {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const chunks: Buffer[] = [];
  let closed = false;
  let ended = false;
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.on('end', () => {
    ended = true;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
  });
  return {
    socket,
    bytes: () => Buffer.concat(chunks),
    text: () => Buffer.concat(chunks).toString('latin1'),
    closed: () => closed,
    ended: () => ended,
  };
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  // First, since it may refuse: nothing is open yet.
  const policy = createPolicy({
    rules: loadAllowList(options.allow ?? ['api.example.test', '.pkg.example.test']),
    addressRules: options.addressRules ?? [],
    ownAddresses: options.ownAddresses ?? ['127.0.0.1', '::1'],
    budgets: options.budgets,
  });
  const lines: EgressAuditLine[] = [];
  const lookedUp: string[] = [];
  const dialled: string[] = [];
  const arrivals: { socket: Socket; chunks: Buffer[] }[] = [];
  const guestSides: Socket[] = [];
  const clients: Client[] = [];
  const upstream = createServer({ allowHalfOpen: true }, (socket) => {
    const arrival = { socket, chunks: [] as Buffer[] };
    arrivals.push(arrival);
    socket.on('error', () => {});
    socket.on('data', (chunk) => arrival.chunks.push(chunk));
    if (options.upstream === undefined) socket.on('end', () => socket.end());
    else options.upstream(socket);
  });
  const upstreamPort = await listen(upstream);
  const proxy = createEgressProxy({
    policy,
    ids: { vm: 'vm_test' },
    limits: options.limits ?? {},
    ...(options.chain && { chain: options.chain }),
    ...(options.leaseValid && { leaseValid: options.leaseValid }),
    resolve: async (host) => {
      lookedUp.push(host);
      return (await options.resolve?.(host, lookedUp.length - 1)) ?? [PUBLIC_V4];
    },
    dial: async (target) => {
      dialled.push(target.address);
      await options.beforeDial?.(target);
      return await defaultDial({ ...target, address: '127.0.0.1', family: 4, port: upstreamPort });
    },
    audit:
      options.auditNow === undefined
        ? async (line) => {
            await options.audit?.(line);
            lines.push(line);
          }
        : (line) => {
            options.auditNow?.(line);
            lines.push(line);
          },
  });
  const front = createServer({ allowHalfOpen: true }, (socket) => {
    guestSides.push(socket);
    proxy.handle(socket);
  });
  const port = await listen(front);
  return {
    proxy,
    policy,
    port,
    upstreamPort,
    lines,
    lookedUp,
    dialled,
    arrivals,
    guestSides,
    connect() {
      const client = makeClient(port);
      clients.push(client);
      return client;
    },
    async stop() {
      for (const { socket } of clients) socket.destroy();
      await proxy.close();
      for (const { socket } of arrivals) socket.destroy();
      front.close();
      upstream.close();
    },
  };
}

/** The status of an answer, or undefined while there is none. */
export function statusOf(client: Client): number | undefined {
  const match = /^HTTP\/1\.1 (\d{3}) /.exec(client.text());
  return match === null ? undefined : Number(match[1]);
}

export function connectHead(target: string): string {
  return `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`;
}

/** Opens a tunnel and waits for the 200. */
export async function openTunnel(harness: Harness, target = 'api.example.test:443'): Promise<Client> {
  const client = harness.connect();
  client.socket.write(connectHead(target));
  await until(() => statusOf(client) !== undefined, 'an answer');
  if (statusOf(client) !== 200) throw new Error(`no tunnel: ${client.text()}`);
  return client;
}

/** The bytes a tunnel delivered after the 200. */
export function tunnelBytes(client: Client): Buffer {
  const bytes = client.bytes();
  return bytes.subarray(bytes.indexOf('\r\n\r\n') + 4);
}
