import type { CallKind } from '../endpoints.ts';
import type { KnownFormat, ModelFeature } from '../formats.ts';
import type { BodyRefusal } from '../reasons.ts';
import type { BatchParts } from './batch-parts.ts';
import { checkAnthropic, checkAnthropicBatch } from './check-anthropic.ts';
import { checkChat, checkStoredChat } from './check-chat.ts';
import { checkGemini, checkGeminiBatch, checkGeminiCache } from './check-gemini.ts';
import { checkOpenaiBatch } from './check-openai-batch.ts';
import { checkConversation, checkResponses } from './check-responses.ts';
import { type Finding, Findings, type JsonObject, objectOf } from './findings.ts';
import { type Ask, type AskFault, type AskRules, modelOf, plainName, readAsk, readBatch } from './read-asks.ts';
import { scanJson } from './scan-json.ts';

/** What the operator says of bodies. */
export interface BodyRules extends AskRules {
  readonly kind: CallKind;
  /** Features that may be used. */
  readonly features: readonly ModelFeature[];
  /** Whether the path alone makes the answer a stream. */
  readonly streams: boolean;
}

/** Whether a body passes, and what goes up in its place. */
export type BodyDecision =
  | {
      readonly verdict: 'allowed';
      readonly reason: 'listed';
      /** What was judged, written anew: no reader of it finds anything else in it. */
      readonly text: string;
      /** The one model that it is for; undefined for none, and for more than one. */
      readonly model: string | undefined;
      readonly isStream: boolean;
      /** What it may cost, request by request; null where nobody can say, which no budget allows. */
      readonly asks: readonly Ask[] | null;
    }
  | { readonly verdict: 'refused'; readonly reason: BodyRefusal; readonly message: string; readonly findings: readonly Finding[] };

const CHECKS = {
  anthropic_messages: checkAnthropic,
  openai_responses: checkResponses,
  openai_chat: checkChat,
  gemini: checkGemini,
} as const;

const BATCHES: Readonly<Record<KnownFormat, (body: JsonObject, findings: Findings) => BatchParts>> = {
  anthropic_messages: checkAnthropicBatch,
  openai_responses: (body, findings) => checkOpenaiBatch('openai_responses', body, findings),
  openai_chat: (body, findings) => checkOpenaiBatch('openai_chat', body, findings),
  gemini: checkGeminiBatch,
};

/** What is written to a store of the provider's; no path of Anthropic's does so. */
const STORES: Readonly<Record<KnownFormat, (body: JsonObject, findings: Findings) => void>> = {
  anthropic_messages: (_body, findings) => findings.add('unknown', 'body'),
  openai_responses: checkConversation,
  openai_chat: checkStoredChat,
  gemini: checkGeminiCache,
};

/** Judges a whole body of a known format against the closed list of what it may ask for. */
export function checkBody(bytes: Uint8Array, rules: BodyRules): BodyDecision {
  const fault = scanJson(bytes);
  if (fault !== undefined) return refused(fault, 'the body is nested too deep or has too many values');
  const body = parseObject(bytes);
  if (body === undefined) return refused('body_not_json', 'the body must be one JSON object in UTF-8');
  const findings = new Findings();
  const parts = judge(body, rules, findings);
  const bad = findings.all.filter(({ feature }) => feature === 'unknown' || !rules.features.includes(feature));
  if (bad.length > 0) return refusedBy(bad);
  if (rules.format === 'openai_responses' && rules.kind === 'generate' && body.store === undefined)
    body.store = rules.features.includes('stored_conversations');
  const isStream = rules.streams || (rules.kind === 'generate' && body.stream === true);
  if (rules.format === 'openai_chat' && isStream) body.stream_options = { ...objectOf(body.stream_options), include_usage: true };
  const asked = readAsks(body, bytes.length, parts, rules);
  if ('reason' in asked) return refused(asked.reason, asked.message);
  return { verdict: 'allowed', reason: 'listed', text: JSON.stringify(body), isStream, ...asked };
}

/** Judges a body as what its path takes; gives the requests of a batch. */
function judge(body: JsonObject, { format, kind }: BodyRules, findings: Findings): BatchParts {
  if (kind === 'batch') return BATCHES[format](body, findings);
  if (kind === 'store') STORES[format](body, findings);
  else CHECKS[format](body, findings);
  return [];
}

function readAsks(
  body: JsonObject,
  bytes: number,
  parts: BatchParts,
  rules: BodyRules,
): { readonly model: string | undefined; readonly asks: readonly Ask[] | null } | AskFault {
  if (rules.kind === 'batch') {
    const asks = readBatch(parts, rules);
    if (asks === null) return { model: rules.model, asks };
    if ('reason' in asks) return asks;
    const models = new Set(asks.map(({ model }) => model));
    return { model: models.size === 1 ? asks[0]?.model : undefined, asks };
  }
  if (rules.kind === 'store') return readStore(body, rules);
  if (rules.kind !== 'generate') {
    const model = modelOf(body, rules);
    return typeof model === 'string' ? { model, asks: [] } : model;
  }
  const ask = readAsk(body, bytes, rules);
  return 'reason' in ask ? ask : { model: ask.model, asks: [ask] };
}

/** A stored conversation costs nothing before it is asked of; a context is paid for by the hour that it is kept. */
function readStore(
  body: JsonObject,
  rules: BodyRules,
): { readonly model: string | undefined; readonly asks: readonly Ask[] | null } | AskFault {
  if (rules.format !== 'gemini') return { model: undefined, asks: [] };
  if (body.model === undefined) return { model: undefined, asks: null };
  const model = modelOf({ model: plainName(body.model) }, rules);
  return typeof model === 'string' ? { model, asks: null } : model;
}

function parseObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    return objectOf(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)));
  } catch {
    return undefined;
  }
}

function refusedBy(bad: readonly Finding[]): BodyDecision {
  const unknown = bad.filter(({ feature }) => feature === 'unknown');
  const named = bad.filter(({ feature }) => feature !== 'unknown');
  if (named.length === 0) {
    const message = `the closed list of this format has no ${unknown.map(({ at }) => at).join(', ')}`;
    return { verdict: 'refused', reason: 'field_not_listed', message, findings: bad };
  }
  const also = unknown.length === 0 ? '' : `, and the closed list of this format has no ${unknown.map(({ at }) => at).join(', ')}`;
  const message = `policy does not allow ${named.map(({ feature, at }) => `${feature} (${at})`).join(', ')}${also}`;
  return { verdict: 'refused', reason: 'feature_refused', message, findings: bad };
}

function refused(reason: BodyRefusal, message: string): BodyDecision {
  return { verdict: 'refused', reason, message, findings: [] };
}
