import { type JsonObject, objectOf } from '../body/findings.ts';
import type { ModelFormat } from '../formats.ts';
import { NO_USAGE, type TokenUsage } from './token-usage.ts';

type KnownFormat = Exclude<ModelFormat, 'pass_through'>;

/** What one JSON document of an answer says of usage; `isFinal` where nothing can come after it. */
export interface UsageSeen {
  readonly usage: TokenUsage;
  readonly isFinal: boolean;
}

/** Largest number of tokens that is believed. */
const TOKENS_MAX = 1_000_000_000;

/** Reads the usage of a whole answer, or of one event of a stream given what came before. Undefined where it says nothing. */
export function readUsage(format: KnownFormat, document: unknown, before: TokenUsage = NO_USAGE): UsageSeen | undefined {
  const object = objectOf(document);
  if (object === undefined) return undefined;
  switch (format) {
    case 'anthropic_messages':
      return readAnthropic(object, before);
    case 'openai_responses':
      return readResponses(object);
    case 'openai_chat':
      return readChat(object);
    case 'gemini':
      return readGemini(object);
  }
}

function readAnthropic(object: JsonObject, before: TokenUsage): UsageSeen | undefined {
  const inner = object.type === 'message_start' ? objectOf(object.message) : object;
  const usage = objectOf(inner?.usage);
  if (usage === undefined) return undefined;
  // Numbers of a later event are those of the whole call; what it leaves out stands as it was.
  const seen = {
    input: count(usage.input_tokens) ?? before.input,
    cacheRead: count(usage.cache_read_input_tokens) ?? before.cacheRead,
    cacheWrite: count(usage.cache_creation_input_tokens) ?? before.cacheWrite,
    output: count(usage.output_tokens) ?? before.output,
  };
  return { usage: seen, isFinal: object.type === 'message_delta' || object.type === 'message' };
}

function readResponses(object: JsonObject): UsageSeen | undefined {
  const inner = typeof object.type === 'string' && object.type.startsWith('response.') ? objectOf(object.response) : object;
  const usage = objectOf(inner?.usage);
  const [input, output] = [count(usage?.input_tokens), count(usage?.output_tokens)];
  if (input === undefined || output === undefined) return undefined;
  return { usage: withCached(input, output, objectOf(usage?.input_tokens_details)?.cached_tokens), isFinal: true };
}

function readChat(object: JsonObject): UsageSeen | undefined {
  const usage = objectOf(object.usage);
  const [input, output] = [count(usage?.prompt_tokens), count(usage?.completion_tokens)];
  if (input === undefined || output === undefined) return undefined;
  return { usage: withCached(input, output, objectOf(usage?.prompt_tokens_details)?.cached_tokens), isFinal: true };
}

function readGemini(object: JsonObject): UsageSeen | undefined {
  const usage = objectOf(object.usageMetadata);
  const input = count(usage?.promptTokenCount);
  if (usage === undefined || input === undefined) return undefined;
  const output = (count(usage.candidatesTokenCount) ?? 0) + (count(usage.thoughtsTokenCount) ?? 0);
  const seen = withCached(input + (count(usage.toolUsePromptTokenCount) ?? 0), output, usage.cachedContentTokenCount);
  const candidates = Array.isArray(object.candidates) ? object.candidates : [];
  return {
    usage: seen,
    isFinal: candidates.some((item) => objectOf(item)?.finishReason !== undefined) || objectOf(object.promptFeedback) !== undefined,
  };
}

function withCached(input: number, output: number, cached: unknown): TokenUsage {
  const cacheRead = Math.min(count(cached) ?? 0, input);
  return { input: input - cacheRead, cacheRead, cacheWrite: 0, output };
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= TOKENS_MAX ? value : undefined;
}
