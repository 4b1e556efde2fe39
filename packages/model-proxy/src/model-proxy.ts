import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { LateValue, MODEL_HEAD_MAX_BYTES } from '@firecrew/credential-broker';
import { type RouteRefusal, refusalBody, refusalStatus } from '@firecrew/model-route';
import { BrokerClient } from './broker-client.ts';
import { BudgetKeeper, type RouteUsage } from './budget-keeper.ts';
import { Call, type CallHost } from './call.ts';
import type { ModelCallLine } from './call-line.ts';
import { GuestConnections } from './guest-connections.ts';
import { MODEL_PROXY_LIMITS, type ModelProxyLimits } from './limits.ts';
import { BodyRoom } from './read-body.ts';
import type { RouteRules } from './route-rules.ts';

export interface ModelProxyOptions {
  readonly rules: RouteRules;
  /** Unix socket of the node's credential broker. */
  readonly broker: string;
  /** Writes one line durably; it throws when it could not, and then nothing is forwarded. */
  readonly audit: (line: ModelCallLine) => void;
  /** Whether this attempt still holds its lease; asked before each call and each chunk. */
  readonly leaseValid?: () => boolean;
  /** Called once, when the budget is reached and the guest has been told. */
  readonly onBudgetReached?: () => void;
  readonly limits?: Partial<ModelProxyLimits>;
  /** Monotonic time in `ms`. */
  readonly clock?: () => number;
}

/** The model route of one attempt. */
export interface ModelProxy {
  /** Serves one connection of the guest. The stream is guarded against errors before this returns, and is destroyed at its end. */
  handle(stream: Duplex): void;
  /** Takes the handle that the broker knows this turn by, from the next request on. Until the first one, requests wait. */
  setHandle(handle: string): void;
  /** Serves from now on. A new proxy is closed. */
  open(): void;
  /** Cuts every call and refuses new ones until it is opened again; what was counted stays. */
  close(): void;
  usage(): RouteUsage;
}

/** The proxy of one guest's model route, which carries out the decisions of `@firecrew/model-route`; it holds a handle and no credential. */
export function createModelProxy(options: ModelProxyOptions): ModelProxy {
  const limits: ModelProxyLimits = { ...MODEL_PROXY_LIMITS, ...options.limits };
  const { rules, audit, leaseValid = () => true, clock = () => performance.now() } = options;
  const budget = new BudgetKeeper(rules);
  const calls = new Set<Call>();
  const connections = new GuestConnections(limits);
  let isOpen = false;
  let numbers = 0;
  let isReachedTold = false;
  // A node agent that started anew gives another one.
  const slot = new LateValue<string>();
  const broker = new BrokerClient(options.broker, slot, limits.brokerMs);
  const host: CallHost = {
    rules,
    limits,
    budget,
    clock,
    leaseValid,
    audit,
    room: new BodyRoom(limits.bodiesBytes),
    broker,
  };

  const server = createServer({ maxHeaderSize: MODEL_HEAD_MAX_BYTES, insecureHTTPParser: false, keepAlive: false });
  // No header is dropped before it is judged; the bound of the bytes holds their number.
  server.maxHeadersCount = 0;
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    if (!connections.begin(request.socket, response)) return;
    numbers += 1;
    const call = new Call(host, numbers, request, response);
    calls.add(call);
    const why = !isOpen ? 'route_closed' : calls.size > limits.calls ? 'calls_busy' : undefined;
    void call.run(why).finally(() => {
      calls.delete(call);
      if (budget.isReached && !isReachedTold) {
        isReachedTold = true;
        options.onBudgetReached?.();
      }
    });
  });
  const refuse = (stream: Duplex, reason: RouteRefusal, detail: string): void => {
    numbers += 1;
    budget.refused();
    try {
      audit({ event: 'refused', call: numbers, reason, status: refusalStatus(reason) });
    } catch {
      // The guest gets a refusal in any case; the attempt ends by its own watch on the audit.
    }
    connections.refuse(stream, refusalStatus(reason), reason, refusalBody(rules.format, reason, detail));
  };
  server.on('clientError', (error: NodeJS.ErrnoException, stream: Duplex) => {
    if (error.code === 'ECONNRESET' || stream.destroyed) return void stream.destroy();
    if (error.code === 'HPE_HEADER_OVERFLOW') return refuse(stream, 'head_too_large', `a head has at most ${MODEL_HEAD_MAX_BYTES} bytes`);
    refuse(stream, 'bad_request', 'this is no request of HTTP/1.1 with one meaning');
  });
  server.on('connect', (_request: IncomingMessage, stream: Duplex) => refuse(stream, 'method_not_allowed', 'the model route is no tunnel'));

  return {
    handle(stream) {
      stream.on('error', () => stream.destroy());
      connections.add(stream);
      server.emit('connection', stream);
    },
    setHandle: (handle) => slot.set(handle),
    open() {
      isOpen = true;
    },
    close() {
      isOpen = false;
      for (const call of calls) call.cut('route_closed');
      connections.destroyAll();
      broker.close();
    },
    usage: () => budget.summary(),
  };
}
