import { describe, expect, it } from 'vitest';
import { checkBody, MODEL_FEATURES, type ModelFeature } from '../src/index.ts';
import { BASE, check, type Format, input, parts, ROWS, said, URL_TEXT } from './feature-rows.ts';

describe('a body', () => {
  it.each(ROWS)('of %s is refused for %s by %s, and passes where policy names it', (format, feature, _what, extra) => {
    expect(check(format, extra)).toMatchObject({
      verdict: 'refused',
      reason: 'feature_refused',
      findings: expect.arrayContaining([expect.objectContaining({ feature })]),
    });
    expect(
      check(
        format,
        extra,
        MODEL_FEATURES.filter((item) => item !== feature),
      ),
    ).toMatchObject({ verdict: 'refused' });
    expect(check(format, extra, [feature])).toMatchObject({ verdict: 'allowed' });
  });

  it.each<readonly [Format, string, Record<string, unknown>]>([
    ['anthropic_messages', 'new_field', { new_field: 1 }],
    ['anthropic_messages', 'Tools', { Tools: [{ type: 'web_search_20250305' }] }],
    ['anthropic_messages', 'a field of a message', { messages: [{ role: 'user', content: 'hi', new_field: 1 }] }],
    ['anthropic_messages', 'a block', said({ type: 'new_block' })],
    ['anthropic_messages', 'a source', said({ type: 'image', source: { type: 'new' } })],
    ['openai_responses', 'new_field', { new_field: 1 }],
    ['openai_responses', 'an item', input({ type: 'new_item' })],
    ['openai_responses', 'a part', input({ role: 'user', content: [{ type: 'new_part' }] })],
    ['openai_chat', 'plugins', { plugins: [{ id: 'web' }] }],
    ['openai_chat', 'a part', said({ type: 'new_part' })],
    ['gemini', 'newField', { newField: 1 }],
    ['gemini', 'both spellings of one field', { systemInstruction: { parts: [] }, system_instruction: { parts: [] } }],
    ['gemini', 'a part', parts({ newPart: {} })],
    ['gemini', 'a tool', { tools: [{ newTool: {} }] }],
  ])('of %s with %s is refused, since nobody knows what it asks for', (format, _what, extra) => {
    expect(check(format, extra, MODEL_FEATURES)).toMatchObject({ verdict: 'refused', reason: 'field_not_listed' });
  });

  it.each<readonly [Format, string, Record<string, unknown>]>([
    [
      'anthropic_messages',
      "tools of the agent's own",
      {
        tools: [
          { name: 'f', input_schema: { properties: { url: { type: 'string' } } } },
          { type: 'bash_20250124', name: 'bash' },
        ],
      },
    ],
    [
      'anthropic_messages',
      'an image with its data',
      said({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } }),
    ],
    [
      'anthropic_messages',
      'the input of a tool that holds an address',
      said({ type: 'tool_use', id: 't', name: 'f', input: { url: URL_TEXT, file_id: 'f' } }),
    ],
    ['anthropic_messages', 'a result that is text', said({ type: 'tool_result', tool_use_id: 't', content: `see ${URL_TEXT}` })],
    ['anthropic_messages', 'nothing of a feature', { mcp_servers: [], container: null, tools: [] }],
    [
      'openai_responses',
      'functions',
      { tools: [{ type: 'function', name: 'f', parameters: { properties: { url: {} } } }, { type: 'local_shell' }, { type: 'shell' }] },
    ],
    [
      'openai_responses',
      'an image with its data',
      input({ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,aGk=' }] }),
    ],
    [
      'openai_responses',
      'a whole conversation',
      input(
        { role: 'user', content: 'hi' },
        { type: 'function_call', name: 'f', arguments: '{}', call_id: 'c' },
        { type: 'reasoning', id: 'r', summary: [] },
      ),
    ],
    [
      'openai_responses',
      'further tools that the agent carries out',
      input(
        {
          type: 'additional_tools',
          id: 'at_1',
          role: 'developer',
          tools: [
            {
              type: 'namespace',
              name: 'functions',
              description: '',
              tools: [
                { type: 'custom', name: 'exec' },
                { type: 'function', name: 'f' },
              ],
            },
          ],
        },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
      ),
    ],
    ['openai_responses', 'store false and nothing of a feature', { store: false, previous_response_id: null, background: false }],
    [
      'openai_chat',
      'functions and an image with its data',
      {
        tools: [{ type: 'function', function: { name: 'f' } }],
        ...said({ type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } }),
      },
    ],
    [
      'gemini',
      'functions and data',
      {
        tools: [{ functionDeclarations: [{ name: 'f' }] }],
        ...parts({ inlineData: { mimeType: 'image/png', data: 'aGk=' } }, { functionResponse: { name: 'f', response: { url: URL_TEXT } } }),
      },
    ],
  ])('of %s with %s passes', (format, _what, extra) => {
    expect(check(format, extra)).toMatchObject({ verdict: 'allowed' });
  });
});

describe('a model', () => {
  it.each(['m', 'm-2'])('%s passes where every one may be asked, and where it is listed by its exact name', (model) => {
    const judge = (models: readonly string[] | null) =>
      checkBody(new TextEncoder().encode(JSON.stringify({ ...BASE.openai_chat, model })), {
        format: 'openai_chat',
        kind: 'generate',
        features: [],
        models,
        outputCap: null,
        model: undefined,
        streams: false,
      });
    expect(judge(null)).toMatchObject({ verdict: 'allowed', model });
    expect(judge([model])).toMatchObject({ verdict: 'allowed', model });
    expect(judge(['m-', 'M', 'm-22'])).toMatchObject({ verdict: 'refused', reason: 'model_not_listed' });
  });
});

describe('what goes up in place of a body', () => {
  it('stores nothing at the provider unless policy says so', () => {
    const text = (features: readonly ModelFeature[]) => {
      const result = check('openai_responses', {}, features);
      return result.verdict === 'allowed' ? JSON.parse(result.text) : undefined;
    };
    expect(text([])).toMatchObject({ store: false });
    expect(text(['stored_conversations'])).toMatchObject({ store: true });
  });

  it('asks a stream of chat completions for its usage', () => {
    const result = check('openai_chat', { stream: true, stream_options: { include_usage: false } });
    expect(result.verdict === 'allowed' && JSON.parse(result.text).stream_options).toEqual({ include_usage: true });
  });
});
