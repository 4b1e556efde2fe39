import type { CallKind } from '../endpoints.ts';
import type { ModelFeature, ModelFormat } from '../formats.ts';
import type { BodyRefusal } from '../reasons.ts';
import { capOutput } from './cap-output.ts';
import { checkAnthropic } from './check-anthropic.ts';
import { checkChat } from './check-chat.ts';
import { checkGemini } from './check-gemini.ts';
import { checkResponses } from './check-responses.ts';
import { estimateInput } from './estimate-input.ts';
import { type Finding, Findings, type JsonObject, objectOf } from './findings.ts';
import { scanJson } from './scan-json.ts';

/** What the operator says of bodies. */
export interface BodyRules {
  readonly format: Exclude<ModelFormat, 'pass_through'>;
  readonly kind: CallKind;
  /** Features that may be used. */
  readonly features: readonly ModelFeature[];
  /** Exact names of the models that may be asked; null for every one. */
  readonly models: readonly string[] | null;
  /** Most tokens of an answer that is set where the request sets none; null sets none. */
  readonly outputCap: number | null;
  /** Model that the path names. */
  readonly model: string | undefined;
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
      readonly model: string;
      readonly isStream: boolean;
      /** Tokens of the request, estimated. */
      readonly inputTokens: number;
      /** Most tokens of all its answers together; null where nothing limits them. */
      readonly outputTokens: number | null;
    }
  | { readonly verdict: 'refused'; readonly reason: BodyRefusal; readonly message: string; readonly findings: readonly Finding[] };

const CHECKS = {
  anthropic_messages: checkAnthropic,
  openai_responses: checkResponses,
  openai_chat: checkChat,
  gemini: checkGemini,
} as const;
const MODEL = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$/;

/** Judges a whole body of a known format against the closed list of what it may ask for. */
export function checkBody(bytes: Uint8Array, rules: BodyRules): BodyDecision {
  const fault = scanJson(bytes);
  if (fault !== undefined) return refused(fault, 'the body is nested too deep or has too many values');
  const body = parseObject(bytes);
  if (body === undefined) return refused('body_not_json', 'the body must be one JSON object in UTF-8');
  const findings = new Findings();
  CHECKS[rules.format](body, findings);
  const bad = findings.all.filter(({ feature }) => feature === 'unknown' || !rules.features.includes(feature));
  if (bad.length > 0) return refusedBy(bad);
  const model = rules.model ?? body.model;
  if (typeof model !== 'string' || !MODEL.test(model)) return refused('bad_model', 'the body must name a model');
  if (rules.models !== null && !rules.models.includes(model)) return refused('model_not_listed', 'policy does not list this model');
  return finish(body, bytes, rules, model);
}

function finish(body: JsonObject, bytes: Uint8Array, rules: BodyRules, model: string): BodyDecision {
  if (rules.format === 'openai_responses' && body.store === undefined) body.store = rules.features.includes('stored_conversations');
  const isStream = rules.streams || body.stream === true;
  if (rules.format === 'openai_chat' && isStream) body.stream_options = { ...objectOf(body.stream_options), include_usage: true };
  const isCounted = rules.kind === 'generate';
  const output = isCounted ? capOutput(body, rules.format, rules.outputCap) : { tokens: 0 };
  if (output === undefined) return refused('bad_output_limit', 'a limit of output tokens must be a whole number above 0');
  const inputTokens = isCounted ? estimateInput(body, bytes.length) : 0;
  return { verdict: 'allowed', reason: 'listed', text: JSON.stringify(body), model, isStream, inputTokens, outputTokens: output.tokens };
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
