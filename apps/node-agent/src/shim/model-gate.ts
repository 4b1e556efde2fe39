import type { Duplex } from 'node:stream';
import { CodedError } from '@firecrew/base';
import { createModelProxy, type ModelCallLine, type ModelProxy } from '@firecrew/model-proxy';
import { refusalBody } from '@firecrew/model-route';
import type { ModelCall, ModelUsage, TurnEventBody } from '@firecrew/protocol';
import { type ModelLaunch, routeRulesOf } from '../model/model-launch.ts';

/** Audit lines of refusals that are written; more are counted. A guest can ask as often as it likes. */
export const MAX_MODEL_REFUSAL_LINES = 1_000;
/** Audit lines of one attempt. Beyond them nothing is forwarded any more, and the attempt ends. */
export const MAX_MODEL_LINES = 50_000;

/** Why a turn ends when its budget is reached, for a person. */
export const BUDGET_DETAIL = 'the budget of the model route is reached';

export interface ModelGateOptions {
  /** Null where the backend has no route on this node. */
  readonly launch: ModelLaunch | null;
  readonly backend: string;
  readonly leaseValid: () => boolean;
  /** Writes one event before this returns; it throws when it could not. */
  readonly event: (body: TurnEventBody) => void;
}

/** The model route of an attempt: open while its agent works, for a guest that is isolated from the process that holds the handle. */
export class ModelGate {
  readonly #options: ModelGateOptions;
  readonly #proxy: ModelProxy | undefined;
  #isIsolated = false;
  #lines = 0;
  #refusals = 0;
  #onBudget: (() => void) | undefined;

  constructor(options: ModelGateOptions) {
    const { launch, leaseValid } = options;
    this.#options = options;
    if (launch === null) return;
    this.#proxy = createModelProxy({
      rules: routeRulesOf(launch),
      broker: launch.broker,
      leaseValid,
      audit: (line) => this.#audit(line),
      onBudgetReached: () => this.#onBudget?.(),
    });
  }

  /** Whether guests are told of the route. */
  get isOffered(): boolean {
    return this.#proxy !== undefined && this.#isIsolated;
  }

  /** Whether this backend has a route at all. */
  get exists(): boolean {
    return this.#proxy !== undefined;
  }

  /** A call was refused because the budget is used up: the turn is to end. */
  get isBudgetReached(): boolean {
    return this.#proxy?.usage().isBudgetReached ?? false;
  }

  /** Too many lines: nothing is forwarded any more. */
  get isFull(): boolean {
    return this.#lines > MAX_MODEL_LINES;
  }

  /** Says how the guest is isolated. Without isolation it could read the memory of this process, and of the broker: then there is no route. */
  decide(isolation: 'vm' | 'bubblewrap' | 'none'): void {
    this.#isIsolated = isolation !== 'none';
    if (this.#proxy === undefined || this.#isIsolated) return;
    const message = `the backend ${this.#options.backend} has a model route, which is not offered: nothing isolates the guest from the credential`;
    this.#options.event({ kind: 'notice', level: 'warning', code: 'model_route_not_offered', message });
  }

  /** Takes the handle that the credential broker knows this turn by. */
  setHandle(handle: string): void {
    if (this.#isIsolated) this.#proxy?.setHandle(handle);
  }

  onBudgetReached(call: () => void): void {
    this.#onBudget = call;
  }

  open(): void {
    if (this.#isIsolated) this.#proxy?.open();
  }

  close(): void {
    this.#proxy?.close();
  }

  /** Serves one connection of a guest. */
  handle(stream: Duplex): void {
    const { launch } = this.#options;
    if (this.#proxy !== undefined && this.#isIsolated) {
      this.#proxy.handle(stream);
      return;
    }
    stream.on('error', () => stream.destroy());
    const body = refusalBody(
      launch?.format ?? 'pass_through',
      'isolation_missing',
      'nothing isolates this guest from the credential of the route',
    );
    stream.end(
      `HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nx-firecrew-reason: isolation_missing\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    );
    stream.resume();
  }

  summary(): ModelUsage | undefined {
    if (this.#proxy === undefined) return undefined;
    const { charged, ...usage } = this.#proxy.usage();
    return { format: this.#options.launch?.format ?? '', ...usage, chargedTokens: charged.tokens, chargedMicros: charged.micros };
  }

  #audit(line: ModelCallLine): void {
    if (line.event === 'refused') {
      this.#refusals += 1;
      if (this.#refusals > MAX_MODEL_REFUSAL_LINES) return;
    }
    this.#lines += 1;
    if (this.isFull) throw new CodedError('model_audit_full', `an attempt has ${MAX_MODEL_LINES} audit lines of its model route`);
    this.#options.event(noticeOf(line, this.#options.backend));
    if (line.isCredentialRefused !== true) return;
    const message = `the provider refused the credential of the model route of ${this.#options.backend} (status ${line.status}); correct what \`modelRoutes\` of the node names`;
    this.#options.event({ kind: 'notice', level: 'error', code: 'model_credential_refused', message });
  }
}

function noticeOf(line: ModelCallLine, backend: string): TurnEventBody {
  const { event, call, reason } = line;
  const detail: ModelCall = {
    event,
    call,
    reason,
    path: line.path ?? null,
    model: line.model ?? null,
    features: [...(line.features ?? [])],
    status: line.status ?? null,
    usage: line.usage ?? null,
    chargedTokens: line.charged?.tokens ?? null,
    chargedMicros: line.charged?.micros ?? null,
    leaks: line.leaks ?? 0,
    durationMs: line.durationMs ?? null,
  };
  const level = event === 'refused' ? 'warning' : 'info';
  return { kind: 'notice', level, code: `model_call_${event}`, message: describe(line, backend), call: detail };
}

function describe({ event, reason, path, model, features, status, charged }: ModelCallLine, backend: string): string {
  const what = [path, model].filter((part) => part !== undefined).join(' ');
  const wanted = features === undefined ? '' : `: ${features.join(', ')}`;
  if (event === 'open') return `model route of ${backend}: ${what}`;
  if (event === 'refused') return `model route of ${backend} refused ${what || 'a request'} (${reason}${wanted})`;
  return `model route of ${backend}: ${what} ended (${reason}, status ${status ?? 'none'}, ${charged?.tokens ?? 0} tokens)`;
}
