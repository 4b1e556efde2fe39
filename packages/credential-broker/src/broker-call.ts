import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { ChainError } from '@firecrew/egress-proxy';
import {
  CredentialFilter,
  credentialHeader,
  decideAnswer,
  decideHead,
  type HeadDecision,
  type HeaderPair,
  headerPairs,
  holdsCredential,
  refusalStatus,
} from '@firecrew/model-route';
import { gatherWrites } from './gather-writes.ts';
import type { Cuttable } from './handles.ts';
import type { BrokerLimits } from './limits.ts';
import { passBody } from './pass-body.ts';
import type { OpenRoute } from './routes.ts';
import type { UpstreamClient } from './upstream-client.ts';
import { type BrokerRefusal, LEAKS_ANNOUNCED, leaksTrailer, refusedHeaders } from './wire.ts';

type Head = Extract<HeadDecision, { verdict: 'allowed' }>;

/** What a call works with. */
export interface BrokerCallHost {
  readonly limits: BrokerLimits;
  /** An upstream answered 401 or 403 to a credential. */
  readonly onCredentialRefused: (route: string, status: number) => void;
  /** An upstream answered 401 to a credential for which there may be another one. */
  readonly onRenewalWanted: (route: string, credential: string) => void;
}

/** Of the connection between shim and broker: they are judged and framed anew, and are none of the guest's. */
const OF_THE_CONNECTION = /^(?:proxy-authorization|connection|host)$/;

/** One request of a shim whose handle holds: judged again by its head, sent with the credential, answered without it. */
export class BrokerCall implements Cuttable {
  readonly #host: BrokerCallHost;
  readonly #route: OpenRoute;
  readonly #client: UpstreamClient;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #upstream: ClientRequest | undefined;
  #isCut = false;

  constructor(host: BrokerCallHost, route: OpenRoute, client: UpstreamClient, request: IncomingMessage, response: ServerResponse) {
    this.#host = host;
    this.#route = route;
    this.#client = client;
    this.#request = request;
    this.#response = response;
    response.once('close', () => {
      if (!response.writableFinished) this.cut();
    });
  }

  /** Ends the call at once, on both sides. */
  cut(): void {
    this.#isCut = true;
    this.#upstream?.destroy();
    this.#response.destroy();
  }

  /** Never rejects. */
  async run(): Promise<void> {
    try {
      const { credential } = this.#route;
      const head = this.#judge();
      if (head.verdict === 'refused') return this.#refuse(head.reason, true);
      const secret = await credential.take(this.#host.limits.credentialMs);
      if (this.#isCut) return;
      if (secret === undefined) return this.#refuse('credential_missing', true);
      await this.#exchange(head, secret);
    } catch {
      // A step that failed in a way that nobody foresaw ends this call and no other.
      this.cut();
    }
  }

  #judge(): HeadDecision {
    const { format, header, features = [] } = this.#route.route;
    const { bodyBytes, uploadBytes } = this.#host.limits;
    const { method = '', url = '', rawHeaders } = this.#request;
    const own = headerPairs(rawHeaders).filter(([name]) => !OF_THE_CONNECTION.test(name));
    return decideHead(
      { method, target: url, rawHeaders: own.flat() },
      { format, features, bodyMaxBytes: bodyBytes, uploadMaxBytes: uploadBytes, credentialHeader: header?.name },
    );
  }

  async #exchange(head: Head, secret: string | null): Promise<void> {
    const { format, header } = this.#route.route;
    const credential = secret === null ? [] : [credentialHeader(format, secret, header)];
    const { request, isConnected } = this.#client.begin(head.method, head.target, [...this.#headersUp(head), ...credential]);
    this.#upstream = request;
    const answer = new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve);
      request.once('upgrade', () => reject(new Error('the upstream changed the protocol')));
      request.on('error', reject);
      request.once('close', () => reject(new Error('the upstream closed the connection')));
    });
    // It may fail before it is waited for.
    answer.catch(() => undefined);
    if (head.hasBody) this.#passBody(request, head);
    else request.end();
    let message: IncomingMessage;
    try {
      message = await answer;
    } catch (error) {
      if (this.#isCut) return;
      request.destroy();
      if (error instanceof ChainError) return this.#refuse(error.reason, true);
      const isLate = (error as NodeJS.ErrnoException).code === 'ETIMEDOUT';
      return this.#refuse(isLate ? 'upstream_timeout' : 'upstream_unreachable', !isConnected());
    }
    const status = message.statusCode ?? 502;
    if (secret !== null) this.#noteRefusal(secret, status);
    await this.#answer(head, message, status);
  }

  /** Passes the answer on, chunk by chunk as it comes and at the shim's pace, without the credential in any spelling that is known. */
  async #answer(head: Head, message: IncomingMessage, status: number): Promise<void> {
    const { search } = this.#route.credential;
    const response = this.#response;
    const decision = decideAnswer(message.rawHeaders, (value) => holdsCredential(value, search));
    if (decision.verdict === 'refused') {
      message.destroy();
      return this.#refuse(decision.reason, false);
    }
    const hasTrailer = head.method !== 'HEAD' && status !== 204 && status !== 304;
    response.sendDate = false;
    response.writeHead(status, [...decision.headers, ...(hasTrailer ? [LEAKS_ANNOUNCED] : [])].flat());
    if (decision.isEventStream) response.flushHeaders();
    const filter = new CredentialFilter(search);
    message.on('data', (chunk: Buffer) => {
      const bytes = filter.push(chunk);
      gatherWrites(response);
      if (bytes.length === 0 || response.write(bytes)) return;
      message.pause();
      response.once('drain', () => message.resume());
    });
    const isWhole = await new Promise<boolean>((resolve) => {
      message.once('end', () => resolve(message.complete));
      message.on('error', () => resolve(false));
      message.once('close', () => resolve(false));
    });
    // Half an answer must not look like a whole one.
    if (!isWhole) return this.cut();
    const rest = filter.end();
    if (hasTrailer) response.addTrailers(leaksTrailer(filter.found));
    response.end(rest);
  }

  #noteRefusal(secret: string, status: number): void {
    if (status !== 401 && status !== 403) return;
    const { limits, onCredentialRefused, onRenewalWanted } = this.#host;
    const { name, credential } = this.#route;
    onCredentialRefused(name, status);
    // 403 is of what the credential may do: another one of the same login may do no more.
    if (status === 401 && credential.doubt(secret, limits.renewalMs)) onRenewalWanted(name, secret);
  }

  /** Passes the body on unread; one that grows beyond the bound ends the call. */
  #passBody(request: ClientRequest, { kind }: Head): void {
    const { bodyBytes, uploadBytes } = this.#host.limits;
    passBody(this.#request, request, kind === 'upload' ? uploadBytes : bodyBytes, () => this.cut());
  }

  #headersUp(head: Head): HeaderPair[] {
    // Of an upload the head has its own: what was announced and judged.
    const isJson = this.#route.route.format !== 'pass_through' && head.kind !== 'upload';
    return [
      ...head.headers,
      ...(head.hasBody && isJson ? [['content-type', 'application/json'] as const] : []),
      ...(head.hasBody
        ? [
            head.bodyBytes === undefined
              ? (['transfer-encoding', 'chunked'] as const)
              : (['content-length', String(head.bodyBytes)] as const),
          ]
        : []),
      ...(head.headers.some(([name]) => name === 'user-agent') ? [] : [['user-agent', 'firecrew'] as const]),
      ['accept-encoding', 'identity'] as const,
    ];
  }

  #refuse(reason: BrokerRefusal, isUnsent: boolean): void {
    refuse(this.#response, reason, isUnsent);
  }
}

/** Answers in place of an upstream. */
export function refuse(response: ServerResponse, reason: BrokerRefusal, isUnsent: boolean): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  response.sendDate = false;
  response.writeHead(refusalStatus(reason), [...refusedHeaders({ reason, isUnsent }), ['content-length', '0'] as const].flat()).end();
}
