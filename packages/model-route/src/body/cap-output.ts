import type { ModelFormat } from '../formats.ts';
import { foldName, type JsonObject, objectOf } from './findings.ts';

/** Answers to one request. */
const ANSWERS_MAX = 128;

/**
 * Reads how many tokens all answers to a request may have together, and sets a limit where there is none and `cap` is one.
 * Gives undefined for a limit that is no whole number above 0.
 */
export function capOutput(
  body: JsonObject,
  format: Exclude<ModelFormat, 'pass_through'>,
  cap: number | null,
): { tokens: number | null } | undefined {
  switch (format) {
    case 'anthropic_messages':
      return limitOf(body, ['max_tokens'], cap, 1);
    case 'openai_responses':
      return limitOf(body, ['max_output_tokens'], cap, 1);
    case 'openai_chat':
      return limitOf(body, ['max_completion_tokens', 'max_tokens'], cap, body.n);
    case 'gemini':
      return capGemini(body, cap);
  }
}

function capGemini(body: JsonObject, cap: number | null): { tokens: number | null } | undefined {
  const key = Object.keys(body).find((name) => foldName(name) === 'generationconfig') ?? 'generationConfig';
  const config = objectOf(body[key]) ?? {};
  body[key] = config;
  const namesOf = (folded: string) => Object.keys(config).filter((item) => foldName(item) === folded);
  // In two spellings at once, the server takes one of the two: the larger counts.
  const counts = namesOf('candidatecount').map((name) => config[name] ?? 1);
  if (!counts.every(isCount)) return undefined;
  return limitOf(config, ['maxOutputTokens', ...namesOf('maxoutputtokens')], cap, Math.max(1, ...counts));
}

function limitOf(
  object: JsonObject,
  names: readonly string[],
  cap: number | null,
  answers: unknown,
): { tokens: number | null } | undefined {
  const count = answers ?? 1;
  if (!isCount(count) || count > ANSWERS_MAX) return undefined;
  const set = names.filter((name) => object[name] !== undefined && object[name] !== null);
  const values = set.map((name) => object[name]);
  if (!values.every(isCount)) return undefined;
  if (set.length > 0) return { tokens: Math.max(...values) * count };
  if (cap === null) return { tokens: null };
  object[names[0] ?? ''] = cap;
  return { tokens: cap * count };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value <= 100_000_000;
}
