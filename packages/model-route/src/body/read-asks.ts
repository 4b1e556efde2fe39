import type { KnownFormat } from '../formats.ts';
import type { BodyRefusal } from '../reasons.ts';
import type { BatchParts } from './batch-parts.ts';
import { capOutput } from './cap-output.ts';
import { estimateInput } from './estimate-input.ts';
import { foldName, type JsonObject } from './findings.ts';

/** One answer, or the answers to one request, that a body asks of a model. */
export interface Ask {
  readonly model: string;
  /** Tokens of the request, estimated. */
  readonly inputTokens: number;
  /** Most tokens of all its answers together; null where nothing limits them. */
  readonly outputTokens: number | null;
}

/** What the operator says of models. */
export interface AskRules {
  readonly format: KnownFormat;
  /** Exact names of the models that may be asked; null for every one. */
  readonly models: readonly string[] | null;
  /** Most tokens of an answer that is set where a request sets none; null sets none. */
  readonly outputCap: number | null;
  /** Model that the path names. */
  readonly model: string | undefined;
}

/** Why a request asks no model, in words for people. */
export interface AskFault {
  readonly reason: Extract<BodyRefusal, 'bad_model' | 'model_not_listed' | 'bad_output_limit'>;
  readonly message: string;
}

const MODEL = /^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$/;

/** Reads what one request asks for, and sets its limit of output where it has none. */
export function readAsk(body: JsonObject, bytes: number, rules: AskRules): Ask | AskFault {
  const model = modelOf(body, rules);
  if (typeof model !== 'string') return model;
  const output = capOutput(body, rules.format, rules.outputCap);
  if (output === undefined) return { reason: 'bad_output_limit', message: 'a limit of output tokens must be a whole number above 0' };
  return { model, inputTokens: estimateInput(body, bytes), outputTokens: output.tokens };
}

/** Reads what each request of a batch asks for: one that may not be asked refuses them all. Null where nobody here has read them. */
export function readBatch(parts: BatchParts, rules: AskRules): readonly Ask[] | null | AskFault {
  if (parts === null)
    return rules.models === null ? null : { reason: 'model_not_listed', message: 'policy lists models, and those of a file are not known' };
  const asks: Ask[] = [];
  for (const part of parts) {
    const own = Object.keys(part).find((name) => foldName(name) === 'model');
    // Where the path names the model, a request within that names another could be answered by either.
    if (rules.model !== undefined && own !== undefined && plainName(part[own]) !== rules.model)
      return { reason: 'bad_model', message: 'a request of the batch names another model than the path' };
    const ask = readAsk(part, new TextEncoder().encode(JSON.stringify(part)).length, rules);
    if ('reason' in ask) return ask;
    asks.push(ask);
  }
  return asks;
}

/** The model that a body is for, where it may be asked. */
export function modelOf(body: JsonObject, { model: ofPath, models }: AskRules): string | AskFault {
  const model = ofPath ?? body.model;
  if (typeof model !== 'string' || !MODEL.test(model)) return { reason: 'bad_model', message: 'the body must name a model' };
  if (models !== null && !models.includes(model)) return { reason: 'model_not_listed', message: 'policy does not list this model' };
  return model;
}

/** The name of a model without the folder that Gemini puts before it. */
export function plainName(value: unknown): unknown {
  return typeof value === 'string' ? value.replace(/^models\//, '') : value;
}
