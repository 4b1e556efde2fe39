import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { passBody, readLeaks } from '@firecrew/credential-broker';
import {
  type BodyDecision,
  type CallKind,
  checkBody,
  decideAnswer,
  decideHead,
  type HeadDecision,
  type HeaderPair,
  NO_USAGE,
  type RouteRefusal,
  refusalBody,
  refusalStatus,
  UsageMeter,
} from '@firecrew/model-route';
import type { BrokerClient } from './broker-client.ts';
import type { BudgetKeeper, Held } from './budget-keeper.ts';
import type { CallEnd, ModelCallLine } from './call-line.ts';
import { hostDetail } from './host-detail.ts';
import type { ModelProxyLimits } from './limits.ts';
import { type BodyRoom, readBody } from './read-body.ts';
import { relayAnswer } from './relay-answer.ts';
import type { RouteRules } from './route-rules.ts';

/** What the calls of one route share. */
export interface CallHost {
  readonly rules: RouteRules;
  readonly limits: ModelProxyLimits;
  readonly budget: BudgetKeeper;
  readonly room: BodyRoom;
  readonly broker: Pick<BrokerClient, 'exchange'>;
  readonly audit: (line: ModelCallLine) => void;
  readonly leaseValid: () => boolean;
  readonly clock: () => number;
}

type Head = Extract<HeadDecision, { verdict: 'allowed' }>;
type Body = Extract<BodyDecision, { verdict: 'allowed' }>;

/** What goes up in place of the guest's request. */
interface Order {
  readonly head: Head;
  /** Null where the body is passed on unread, or there is none. */
  readonly body: Body | null;
  readonly held: Held;
}

/** One request of a guest, from its head to its line of the audit: head, body, budget, broker, answer. */
export class Call {
  readonly #host: CallHost;
  readonly #number: number;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #startedMs: number;
  #upstream: ClientRequest | undefined;
  #end: CallEnd | undefined;

  constructor(host: CallHost, number: number, request: IncomingMessage, response: ServerResponse) {
    this.#host = host;
    this.#number = number;
    this.#request = request;
    this.#response = response;
    this.#startedMs = host.clock();
    response.once('close', () => {
      if (!response.writableFinished) this.cut('guest_gone');
    });
  }

  /** Goes through the steps; `why` refuses at once. Never rejects. */
  async run(why: RouteRefusal | undefined): Promise<void> {
    try {
      if (why !== undefined) return await this.#refuse(why, hostDetail(why));
      const head = await this.#readHead();
      if (head === undefined) return;
      const order = await this.#readOrder(head);
      if (order !== undefined) await this.#forward(order);
    } catch {
      // A step that failed in a way that nobody foresaw ends this call and no other.
      this.cut('upstream_gone');
      this.#response.destroy();
    }
  }

  /** Ends a call that is under way: what it may have cost is charged. */
  cut(end: CallEnd): void {
    this.#end ??= end;
    this.#upstream?.destroy();
    if (end !== 'guest_gone') this.#response.destroy();
  }

  async #readHead(): Promise<Head | undefined> {
    const { rules, limits, leaseValid } = this.#host;
    const { method = '', url = '', rawHeaders } = this.#request;
    const head = decideHead(
      { method, target: url, rawHeaders },
      {
        format: rules.format,
        bodyMaxBytes: limits.bodyBytes,
        uploadMaxBytes: limits.uploadBytes,
        features: rules.features,
        credentialHeader: rules.header?.name,
      },
    );
    if (head.verdict === 'refused')
      return await this.#refuse(head.reason, head.message, head.feature === undefined ? {} : { features: [head.feature] });
    if (!leaseValid()) return await this.#refuse('lease_lost', hostDetail('lease_lost'), { path: head.path });
    return head;
  }

  /** Reads and judges the body, and holds what the call may cost. */
  async #readOrder(head: Head): Promise<Order | undefined> {
    const { rules, limits, budget, room } = this.#host;
    const { format } = rules;
    if (format === 'pass_through' || UNREAD.has(head.kind)) {
      // Neither a listing nor a file costs tokens; a route that is passed through has no budget.
      return { head, body: null, held: budget.holdNothing() };
    }
    const read = await readBody(this.#request, room, limits);
    if (!read.ok) return await this.#refuse(read.reason, hostDetail(read.reason), { path: head.path });
    const { kind, model, streams } = head;
    const body = checkBody(read.bytes, {
      format,
      kind,
      features: rules.features,
      models: rules.models,
      outputCap: rules.outputCap,
      model,
      streams,
    });
    read.release();
    if (body.verdict === 'refused') {
      const features = [...new Set(body.findings.map(({ feature }) => feature))];
      return await this.#refuse(body.reason, body.message, { path: head.path, ...(features.length === 0 ? {} : { features }) });
    }
    const held = budget.hold(body.asks);
    if ('refusal' in held) return await this.#refuse(held.refusal, held.detail, factsOf(head, body));
    return { head, body, held };
  }

  async #forward(order: Order): Promise<void> {
    const { head, held, body } = order;
    const { audit, budget, rules } = this.#host;
    const facts = factsOf(head, body);
    try {
      audit({ event: 'open', call: this.#number, reason: 'listed', ...facts });
    } catch {
      budget.end(held, NO_USAGE);
      return await this.#answer('audit_unavailable', hostDetail('audit_unavailable'));
    }
    const seen = await this.#exchange(order);
    // An answer that tells of an error cost nothing; one that ended early is charged as it was reserved.
    const isWhole = this.#end === undefined || this.#end === 'answered';
    // A batch is answered before it is worked on: what it may cost stays charged.
    const usage =
      (head.kind !== 'generate' && head.kind !== 'batch') || (isWhole && (seen.status ?? 0) >= 400)
        ? NO_USAGE
        : isWhole
          ? seen.usage
          : undefined;
    const charged = budget.end(held, seen.isUnsent ? NO_USAGE : usage);
    const line: ModelCallLine = {
      event: 'end',
      call: this.#number,
      reason: seen.refusal ?? this.#end ?? 'answered',
      ...facts,
      ...(seen.status === undefined ? {} : { status: seen.status }),
      usage: usage ?? null,
      charged,
      isCredentialRefused: rules.hasCredential && (seen.status === 401 || seen.status === 403),
      leaks: seen.leaks,
      durationMs: this.#host.clock() - this.#startedMs,
    };
    try {
      audit(line);
    } catch {
      this.#response.destroy();
      return;
    }
    // The end is told after its line: who has the whole answer finds it in the audit.
    seen.finish();
  }

  /** Sends the request to the broker and passes its answer on. */
  async #exchange({ head, body }: Order): Promise<Seen> {
    const { rules, broker, leaseValid } = this.#host;
    const text = body === null ? undefined : Buffer.from(body.text);
    const answer = await broker.exchange(
      {
        method: head.method,
        target: head.target,
        headers: [...head.headers, ...(text === undefined ? this.#rawFraming(head) : jsonFraming(text))],
        send: (request) => (text !== undefined || !head.hasBody ? void request.end(text) : this.#passBody(request, head)),
        isRepeatable: text !== undefined || !head.hasBody,
      },
      (request) => {
        this.#upstream = request;
        return this.#end === undefined;
      },
    );
    if (answer.kind === 'refused') return await this.#failed(answer.reason, answer.isUnsent);
    const { message } = answer;
    // Headers are the broker's word; what is not on the closed list goes down to nobody all the same.
    const decision = decideAnswer(message.rawHeaders, () => false);
    if (decision.verdict === 'refused') {
      message.destroy();
      return await this.#failed(decision.reason, false);
    }
    const meter =
      rules.format === 'pass_through' || head.kind !== 'generate' ? undefined : new UsageMeter(rules.format, decision.isEventStream);
    const status = message.statusCode ?? 502;
    this.#response.writeHead(status, decision.headers.flat());
    if (decision.isEventStream) this.#response.flushHeaders();
    const end = await relayAnswer(message, this.#response, { meter, leaseValid });
    if (end !== 'answered') this.cut(end);
    const usage = end === 'answered' ? meter?.end() : undefined;
    const isOpen = end === 'answered' && !this.#response.destroyed;
    return { status, usage, leaks: readLeaks(message.trailers), isUnsent: false, finish: () => void (isOpen && this.#response.end()) };
  }

  /** Passes a body on unread; one that grows beyond the bound ends the call. */
  #passBody(request: ClientRequest, { kind }: Head): void {
    const { bodyBytes, uploadBytes } = this.#host.limits;
    passBody(this.#request, request, kind === 'upload' ? uploadBytes : bodyBytes, () => this.cut('body_too_large'));
  }

  /** There is no answer of the upstream: what the guest is told in its place. A call that was cut has its end already. */
  async #failed(reason: RouteRefusal, isUnsent: boolean): Promise<Seen> {
    const wasCut = this.#end !== undefined;
    this.#end ??= reason === 'upstream_timeout' ? 'upstream_timeout' : 'upstream_gone';
    this.#upstream?.destroy();
    if (!this.#response.headersSent && !this.#response.destroyed) await this.#answer(reason, hostDetail(reason));
    else this.#response.destroy();
    return { ...UNSEEN, isUnsent, ...(wasCut ? {} : { refusal: reason }), finish: () => undefined };
  }

  #rawFraming(head: Head): (readonly [string, string])[] {
    if (!head.hasBody) return [];
    return [
      head.bodyBytes === undefined ? (['transfer-encoding', 'chunked'] as const) : (['content-length', String(head.bodyBytes)] as const),
    ];
  }

  async #refuse(reason: RouteRefusal, detail: string, facts: Partial<ModelCallLine> = {}): Promise<undefined> {
    this.#host.budget.refused();
    try {
      this.#host.audit({ event: 'refused', call: this.#number, reason, status: refusalStatus(reason), ...facts });
    } catch {
      // The guest gets a refusal in any case; the attempt ends by its own watch on the audit.
    }
    await this.#answer(reason, detail);
  }

  /** Answers with a refusal; its connection ends with it, since what the guest sends on is not read. */
  async #answer(reason: RouteRefusal, detail: string): Promise<void> {
    const { format } = this.#host.rules;
    const body = refusalBody(format, reason, detail);
    const isWhole = this.#request.complete;
    this.#request.resume();
    if (this.#response.destroyed) return;
    this.#response.writeHead(refusalStatus(reason), {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'x-firecrew-reason': reason,
      ...(refusalStatus(reason) === 429 ? { 'retry-after': '2' } : {}),
      ...(isWhole ? {} : { connection: 'close' }),
    });
    await new Promise<void>((resolve) => {
      this.#response.once('close', resolve);
      this.#response.end(this.#request.method === 'HEAD' ? undefined : body);
    });
  }
}

/** Kinds of calls whose body is passed on unread, or that have none. */
const UNREAD: ReadonlySet<CallKind> = new Set(['list', 'manage', 'upload']);

/** What a line of the audit says of a call that was judged. */
function factsOf(head: Head, body: Body | null): Pick<ModelCallLine, 'path' | 'model'> {
  return { path: head.path, ...(body?.model === undefined ? {} : { model: body.model }) };
}

interface Seen {
  readonly status: number | undefined;
  readonly usage: ReturnType<UsageMeter['end']>;
  readonly leaks: number;
  /** What the guest was told in place of an answer. */
  readonly refusal?: RouteRefusal;
  /** Nothing of the request reached the upstream. */
  readonly isUnsent: boolean;
  /** Ends the answer to the guest. */
  readonly finish: () => void;
}

function jsonFraming(text: Buffer): HeaderPair[] {
  return [
    ['content-type', 'application/json'],
    ['content-length', String(text.length)],
  ];
}

const UNSEEN = { status: undefined, usage: undefined, leaks: 0, isUnsent: false } as const;
