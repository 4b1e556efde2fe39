import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import {
  BROKER_LIMITS,
  type BrokerRefusal,
  handleHeader,
  type LateValue,
  MODEL_CALLS_MAX,
  MODEL_HEAD_MAX_BYTES,
  readRefused,
} from '@firecrew/credential-broker';
import type { HeaderPair } from '@firecrew/model-route';

/** Pause between two tries to reach a broker that is not there, or does not know the handle yet. */
const TRY_EVERY_MS = 50;
/** A broker answers for its upstream when that is late; one that does not has stopped. */
const GRACE_MS = 10_000;
/** The connection was never made. */
const UNREACHED = new Set(['ECONNREFUSED', 'ENOENT', 'EACCES', 'ENOTSOCK', 'EAGAIN']);

/** What goes to the broker. */
export interface BrokerOrder {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly HeaderPair[];
  /** Sends the body, and ends the request. */
  readonly send: (request: ClientRequest) => void;
  /** Whether `send` may be called a second time. */
  readonly isRepeatable: boolean;
}

/** What came of it: an answer of the upstream, or why there is none. */
export type BrokerAnswer =
  | { readonly kind: 'answer'; readonly message: IncomingMessage }
  | { readonly kind: 'refused'; readonly reason: BrokerRefusal; readonly isUnsent: boolean };

/** The way of one turn to the broker of its node, over connections that are kept between requests. */
export class BrokerClient {
  readonly #socketPath: string;
  readonly #handle: LateValue<string>;
  readonly #waitMs: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MODEL_CALLS_MAX, maxFreeSockets: 8 });

  constructor(socketPath: string, handle: LateValue<string>, waitMs: number) {
    this.#socketPath = socketPath;
    this.#handle = handle;
    this.#waitMs = waitMs;
  }

  /**
   * Sends a request. A broker that is not there, or does not know the handle, is asked again until `waitMs` are over: it may be starting. `begun`
   * gets each try, so that it can be cut; when it gives false, there is none any more.
   */
  async exchange(order: BrokerOrder, begun: (request: ClientRequest) => boolean): Promise<BrokerAnswer> {
    const until = performance.now() + this.#waitMs;
    for (;;) {
      const answer = await this.#try(order, begun, Math.max(0, until - performance.now()));
      const mayPass = answer.kind === 'refused' && (answer.reason === 'broker_unreachable' || answer.reason === 'handle_refused');
      if (!mayPass || !order.isRepeatable || performance.now() >= until) return answer;
      await setTimeout(TRY_EVERY_MS);
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  async #try(order: BrokerOrder, begun: (request: ClientRequest) => boolean, waitMs: number): Promise<BrokerAnswer> {
    const handle = await this.#handle.take(waitMs);
    if (handle === undefined) return { kind: 'refused', reason: 'handle_refused', isUnsent: true };
    const { method, target, headers } = order;
    const sent = request({
      agent: this.#agent,
      socketPath: this.#socketPath,
      method,
      path: target,
      setHost: false,
      headers: [['host', 'broker'] as const, handleHeader(handle), ...headers].flat(),
      maxHeaderSize: MODEL_HEAD_MAX_BYTES,
      timeout: BROKER_LIMITS.renewalMs + BROKER_LIMITS.credentialMs + BROKER_LIMITS.dialMs + BROKER_LIMITS.answerMs + GRACE_MS,
    });
    sent.once('timeout', () => sent.destroy());
    if (!begun(sent)) {
      sent.on('error', () => undefined).destroy();
      return { kind: 'refused', reason: 'broker_lost', isUnsent: true };
    }
    const answer = new Promise<BrokerAnswer>((resolve) => {
      sent.once('response', (message) => {
        const refused = readRefused(message.rawHeaders);
        if (refused === undefined) return resolve({ kind: 'answer', message });
        message.resume();
        resolve({ kind: 'refused', ...refused });
      });
      sent.on('error', (error: NodeJS.ErrnoException) => {
        const isUnsent = UNREACHED.has(error.code ?? '');
        resolve({ kind: 'refused', reason: isUnsent ? 'broker_unreachable' : 'broker_lost', isUnsent });
      });
      sent.once('close', () => resolve({ kind: 'refused', reason: 'broker_lost', isUnsent: false }));
    });
    order.send(sent);
    return await answer;
  }
}
