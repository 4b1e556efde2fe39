import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readUpstream } from '@firecrew/model-route';
import {
  type BrokerLimits,
  type BrokerRefused,
  type BrokerRoute,
  type CredentialBroker,
  createCredentialBroker,
  handleHeader,
  newHandle,
  readLeaks,
  readRefused,
} from '../src/index.ts';

/** The credential of the host in these tests. */
export const SECRET = 'sk-host-0123456789/abc+def=XYZ';

/** One request that reached the upstream. */
export interface Arrival {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Port of the other end of its connection. */
  readonly port: number;
  readonly isClosed: () => boolean;
}

export interface Sent {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly refused: BrokerRefused | undefined;
  readonly body: string;
  readonly leaks: number;
}

/** A request under way. */
export interface UnderWay {
  /** What came of the answer so far. */
  text(): string;
  /** Whole, or why it is not. */
  readonly ended: Promise<'whole' | 'cut'>;
}

export interface Rig {
  readonly broker: CredentialBroker;
  readonly handle: string;
  readonly arrivals: Arrival[];
  readonly refusedCredentials: (readonly [string, number])[];
  /** Credentials that another one is wanted for. */
  readonly renewals: (readonly [string, string])[];
  readonly socketPath: string;
  /** The broker's clock, in `ms`. */
  readonly time: { now: number };
  answer: (arrival: Arrival, response: ServerResponse) => void;
  send(options?: SendOptions): Promise<Sent>;
  begin(options?: SendOptions): UnderWay;
  /** Sends bytes as they are, and gives what came until the connection was closed. */
  raw(bytes: string): Promise<string>;
  stop(): Promise<void>;
}

export interface SendOptions {
  readonly method?: string;
  readonly path?: string;
  /** Null for none. */
  readonly handle?: string | null;
  readonly headers?: readonly (readonly [string, string])[];
  readonly body?: string;
}

/** Waits for a condition, looking again on every turn of the timers. */
export async function until(condition: () => boolean, what: string, ms = 20_000): Promise<void> {
  const end = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`did not happen in ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** A broker on a Unix socket, with one route, one handle, and an upstream on loopback. */
export async function startRig(
  route: Partial<BrokerRoute> = {},
  limits: Partial<BrokerLimits> = {},
  credential: string | null | 'later' = SECRET,
): Promise<Rig> {
  const arrivals: Arrival[] = [];
  const refusedCredentials: (readonly [string, number])[] = [];
  const renewals: (readonly [string, string])[] = [];
  const folder = await mkdtemp(join(tmpdir(), 'fc-cb-'));
  const socketPath = join(folder, 'b.sock');
  const handle = newHandle();
  const time = { now: 0 };
  const upstream = createServer((incoming, response) => {
    let body = '';
    let isClosed = false;
    response.once('close', () => {
      isClosed = true;
    });
    incoming.on('error', () => undefined);
    incoming.setEncoding('utf8').on('data', (part: string) => {
      body += part;
    });
    incoming.once('end', () => {
      const { method = '', url = '', headers } = incoming;
      const arrival = { method, url, headers, body, port: incoming.socket.remotePort ?? 0, isClosed: () => isClosed };
      arrivals.push(arrival);
      rig.answer(arrival, response);
    });
  }).listen(0, '127.0.0.1');
  await once(upstream, 'listening');
  const broker = createCredentialBroker({
    limits,
    clock: () => time.now,
    onCredentialRefused: (name, status) => refusedCredentials.push([name, status]),
    onRenewalWanted: (name, credential) => renewals.push([name, credential]),
  });
  broker.setRoute('r', {
    format: 'anthropic_messages',
    upstream: readUpstream(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}/base`),
    ...route,
  });
  if (credential !== 'later') broker.setCredential('r', credential);
  broker.setHandles([{ handle, route: 'r', validUntilMs: 1_000 }]);
  broker.server.listen(socketPath);
  await once(broker.server, 'listening');

  const open = (options: SendOptions) => {
    const { method = 'POST', path = '/v1/messages', body = method === 'POST' ? '{"a":1}' : '', headers = [] } = options;
    const shown = options.handle === undefined ? handle : options.handle;
    const sent = request({
      socketPath,
      method,
      path,
      agent: false,
      headers: [
        ['host', 'broker'],
        ...(shown === null ? [] : [handleHeader(shown)]),
        ...(body === '' ? [] : [['content-length', String(Buffer.byteLength(body))]]),
        ...headers,
      ].flat() as string[],
    });
    sent.end(body);
    return sent;
  };
  const rig: Rig = {
    broker,
    handle,
    arrivals,
    refusedCredentials,
    renewals,
    socketPath,
    time,
    answer: (_arrival, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'),
    async send(options = {}) {
      const [message] = (await once(open(options), 'response')) as [IncomingMessage];
      let body = '';
      for await (const part of message) body += String(part);
      const { statusCode: status = 0, headers, rawHeaders, trailers } = message;
      return { status, headers, refused: readRefused(rawHeaders), body, leaks: readLeaks(trailers) };
    },
    begin(options = {}) {
      let text = '';
      const ended = new Promise<'whole' | 'cut'>((resolve) => {
        const sent = open(options);
        sent.on('error', () => resolve('cut'));
        sent.once('response', (message) => {
          message.on('data', (part) => {
            text += String(part);
          });
          message.on('error', () => resolve('cut'));
          message.once('close', () => resolve(message.complete ? 'whole' : 'cut'));
        });
      });
      return { text: () => text, ended };
    },
    async raw(bytes) {
      const socket = connect(socketPath);
      let text = '';
      socket.on('data', (part) => {
        text += String(part);
      });
      socket.on('error', () => undefined);
      socket.write(bytes);
      await once(socket, 'close');
      return text;
    },
    async stop() {
      broker.close();
      upstream.closeAllConnections();
      upstream.close();
      await rm(folder, { recursive: true });
    },
  };
  return rig;
}
