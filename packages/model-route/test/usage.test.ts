import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkBody, estimateInput, type ModelFormat, scanJson, UsageMeter } from '../src/index.ts';

type Format = Exclude<ModelFormat, 'pass_through'>;
const bytes = (text: string) => new TextEncoder().encode(text);
const events = (...documents: unknown[]) => documents.map((document) => `data: ${JSON.stringify(document)}\n\n`).join('');

const ANSWERS: readonly (readonly [Format, string, boolean, string, unknown])[] = [
  [
    'anthropic_messages',
    'whole',
    false,
    JSON.stringify({
      type: 'message',
      usage: { input_tokens: 3, output_tokens: 5, cache_read_input_tokens: 7, cache_creation_input_tokens: 11 },
    }),
    { input: 3, cacheRead: 7, cacheWrite: 11, output: 5 },
  ],
  [
    'anthropic_messages',
    'as events',
    true,
    events(
      { type: 'message_start', message: { usage: { input_tokens: 3, output_tokens: 1, cache_read_input_tokens: 7 } } },
      { type: 'content_block_delta', delta: { text: '"usage": none' } },
      { type: 'message_delta', usage: { output_tokens: 50 } },
    ),
    { input: 3, cacheRead: 7, cacheWrite: 0, output: 50 },
  ],
  [
    'openai_responses',
    'whole',
    false,
    JSON.stringify({ object: 'response', usage: { input_tokens: 10, input_tokens_details: { cached_tokens: 4 }, output_tokens: 2 } }),
    { input: 6, cacheRead: 4, cacheWrite: 0, output: 2 },
  ],
  [
    'openai_responses',
    'as events',
    true,
    events(
      { type: 'response.created', response: { usage: null } },
      { type: 'response.completed', response: { usage: { input_tokens: 10, output_tokens: 2 } } },
    ),
    { input: 10, cacheRead: 0, cacheWrite: 0, output: 2 },
  ],
  [
    'openai_chat',
    'whole',
    false,
    JSON.stringify({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 1 } } }),
    { input: 9, cacheRead: 1, cacheWrite: 0, output: 2 },
  ],
  [
    'openai_chat',
    'as events',
    true,
    `${events({ choices: [{}], usage: null }, { choices: [], usage: { prompt_tokens: 10, completion_tokens: 2 } })}data: [DONE]\n\n`,
    { input: 10, cacheRead: 0, cacheWrite: 0, output: 2 },
  ],
  [
    'gemini',
    'whole',
    false,
    JSON.stringify({
      candidates: [{ finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2, thoughtsTokenCount: 3, cachedContentTokenCount: 4 },
    }),
    { input: 6, cacheRead: 4, cacheWrite: 0, output: 5 },
  ],
  [
    'gemini',
    'as events',
    true,
    events(
      { candidates: [{}], usageMetadata: { promptTokenCount: 10 } },
      { candidates: [{ finishReason: 'STOP' }], usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2 } },
    ),
    { input: 10, cacheRead: 0, cacheWrite: 0, output: 2 },
  ],
  [
    'gemini',
    'as a list',
    false,
    JSON.stringify([
      { usageMetadata: { promptTokenCount: 10 } },
      { candidates: [{ finishReason: 'STOP' }], usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2 } },
    ]),
    { input: 10, cacheRead: 0, cacheWrite: 0, output: 2 },
  ],
];

describe('the usage of an answer', () => {
  it.each(ANSWERS)('of %s %s is read however it is cut', (format, _form, isStream, text, usage) => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 30 }), (lengths) => {
        const meter = new UsageMeter(format, isStream);
        const all = bytes(text);
        for (let at = 0, index = 0; at < all.length; index += 1) {
          const length = lengths[index % lengths.length] ?? 1;
          meter.push(all.subarray(at, at + length));
          at += length;
        }
        expect(meter.end()).toEqual(usage);
      }),
    );
  });

  it.each<readonly [Format, boolean, string]>([
    ['anthropic_messages', false, '{"type":"message"}'],
    ['anthropic_messages', false, '{"type":"message","usage":{"input_tokens":'],
    ['anthropic_messages', true, events({ type: 'message_start', message: { usage: { input_tokens: 3, output_tokens: 1 } } })],
    ['openai_responses', false, '{"usage":{"input_tokens":-1,"output_tokens":2}}'],
    ['openai_responses', false, '{"usage":{"input_tokens":1e30,"output_tokens":2}}'],
    ['openai_chat', true, 'data: [DONE]\n\n'],
    ['gemini', true, events({ candidates: [{}], usageMetadata: { promptTokenCount: 10 } })],
  ])('of %s (stream %s) is unknown where %j does not say all of it', (format, isStream, text) => {
    const meter = new UsageMeter(format, isStream);
    meter.push(bytes(text));
    expect(meter.end()).toBeUndefined();
  });
});

describe('what a call may cost', () => {
  const limits = (format: Format, body: Record<string, unknown>, cap: number | null) => {
    const rules = {
      format,
      kind: 'generate',
      features: [],
      models: null,
      outputCap: cap,
      model: format === 'gemini' ? 'm' : undefined,
      streams: false,
    } as const;
    const result = checkBody(bytes(JSON.stringify({ model: 'm', ...body })), rules);
    return result.verdict === 'allowed' ? { tokens: result.asks?.[0]?.outputTokens, body: JSON.parse(result.text) } : result.reason;
  };

  it.each<readonly [Format, Record<string, unknown>, Record<string, unknown>]>([
    ['anthropic_messages', {}, { max_tokens: 50 }],
    ['openai_responses', {}, { max_output_tokens: 50 }],
    ['openai_chat', {}, { max_completion_tokens: 50 }],
    ['gemini', {}, { generationConfig: { maxOutputTokens: 50 } }],
    ['gemini', { generation_config: { temperature: 1 } }, { generation_config: { temperature: 1, maxOutputTokens: 50 } }],
  ])('of %s with %j has the limit of the route where it sets none', (format, body, set) => {
    expect(limits(format, body, 50)).toMatchObject({ tokens: 50, body: set });
    expect(limits(format, body, null)).toMatchObject({ tokens: null });
  });

  it.each<readonly [Format, Record<string, unknown>, unknown]>([
    ['anthropic_messages', { max_tokens: 7 }, 7],
    ['openai_chat', { max_tokens: 7, max_completion_tokens: 9 }, 9],
    ['openai_chat', { max_tokens: 7, n: 3 }, 21],
    ['gemini', { generationConfig: { maxOutputTokens: 7, candidateCount: 2 } }, 14],
    ['gemini', { generationConfig: { max_output_tokens: 7 } }, 7],
    ['gemini', { generationConfig: { maxOutputTokens: 7, max_output_tokens: 900, candidateCount: 1, candidate_count: 2 } }, 1800],
  ])('of %s with %j is what it says', (format, body, tokens) => {
    expect(limits(format, body, 50)).toMatchObject({ tokens });
  });

  it.each([-1, 0, 1.5, '7', true, 1e12])('is refused with the limit %j', (limit) => {
    expect(limits('anthropic_messages', { max_tokens: limit }, 50)).toBe('bad_output_limit');
  });

  it('counts data apart from text', () => {
    const data = 'A'.repeat(160_000);
    expect(estimateInput({ text: 'hi' }, 100)).toBe(50 + 512);
    expect(estimateInput({ data }, 160_100)).toBe(50 + 10_000 + 512);
  });
});

describe('a text that is to be parsed', () => {
  it.each([
    ['['.repeat(97), 'body_too_deep'],
    ['{"a":'.repeat(97), 'body_too_deep'],
    [`[${'1,'.repeat(500_001)}1]`, 'body_too_complex'],
    ['['.repeat(96), undefined],
    [JSON.stringify(`${'['.repeat(200)}\\"[[`), undefined],
  ])('is looked at before', (text, reason) => {
    expect(scanJson(bytes(text))).toBe(reason);
  });

  it.each(['', '[]', '"x"', '{', '{"a":1}x', '\u0000'])('%j is no body', (text) => {
    const rules = {
      format: 'openai_chat',
      kind: 'generate',
      features: [],
      models: null,
      outputCap: null,
      model: undefined,
      streams: false,
    } as const;
    expect(checkBody(bytes(text), rules)).toMatchObject({ verdict: 'refused', reason: 'body_not_json' });
  });

  it('in bytes that are no UTF-8 is no body', () => {
    const rules = {
      format: 'openai_chat',
      kind: 'generate',
      features: [],
      models: null,
      outputCap: null,
      model: undefined,
      streams: false,
    } as const;
    expect(checkBody(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), rules)).toMatchObject({ reason: 'body_not_json' });
  });
});
