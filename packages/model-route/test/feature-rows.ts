import { checkBody, type ModelFeature, type ModelFormat } from '../src/index.ts';

export type Format = Exclude<ModelFormat, 'pass_through'>;

/** The least that a request of each format is. */
export const BASE: Readonly<Record<Format, Record<string, unknown>>> = {
  anthropic_messages: { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] },
  openai_responses: { model: 'm', input: 'hi' },
  openai_chat: { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  gemini: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
};

export const check = (format: Format, extra: Record<string, unknown>, features: readonly ModelFeature[] = []) =>
  checkBody(new TextEncoder().encode(JSON.stringify({ ...BASE[format], ...extra })), {
    format,
    kind: 'generate',
    features,
    models: null,
    outputCap: null,
    model: format === 'gemini' ? 'm' : undefined,
    streams: false,
  });

export const said = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] });
export const input = (...items: unknown[]) => ({ input: items });
export const parts = (...items: unknown[]) => ({ contents: [{ role: 'user', parts: items }] });
export const URL_TEXT = 'https://evil.test/x';

/** Bodies that ask for a feature. */
export const ROWS: readonly (readonly [Format, ModelFeature, string, Record<string, unknown>])[] = [
  ['anthropic_messages', 'web_search', 'the tool', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  ['anthropic_messages', 'web_fetch', 'the tool', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
  ['anthropic_messages', 'code_execution', 'the tool', { tools: [{ type: 'code_execution_20250825', name: 'c' }] }],
  ['anthropic_messages', 'code_execution', 'a container', { container: 'c_1' }],
  ['anthropic_messages', 'server_tools', 'a tool that nobody knows', { tools: [{ type: 'new_tool_20300101', name: 'n' }] }],
  ['anthropic_messages', 'server_tools', 'one tool that is no list', { tools: { type: 'new_tool_20300101', name: 'n' } }],
  ['anthropic_messages', 'remote_mcp', 'a server', { mcp_servers: [{ type: 'url', url: URL_TEXT, name: 'm' }] }],
  ['anthropic_messages', 'remote_mcp', 'the toolset', { tools: [{ type: 'mcp_toolset', mcp_server_name: 'm' }] }],
  ['anthropic_messages', 'url_sources', 'an image', said({ type: 'image', source: { type: 'url', url: URL_TEXT } })],
  ['anthropic_messages', 'url_sources', 'a document', said({ type: 'document', source: { type: 'url', url: URL_TEXT } })],
  [
    'anthropic_messages',
    'url_sources',
    'an image with a second source',
    said({ type: 'image', source: { type: 'base64', data: 'aa', url: URL_TEXT } }),
  ],
  [
    'anthropic_messages',
    'url_sources',
    'an image in the result of a tool',
    said({ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source: { type: 'url', url: URL_TEXT } }] }),
  ],
  [
    'anthropic_messages',
    'url_sources',
    'an image in a document',
    said({ type: 'document', source: { type: 'content', content: [{ type: 'image', source: { type: 'url', url: URL_TEXT } }] } }),
  ],
  [
    'anthropic_messages',
    'url_sources',
    'one block that is no list',
    { messages: [{ role: 'user', content: { type: 'image', source: { type: 'url', url: URL_TEXT } } }] },
  ],
  ['anthropic_messages', 'url_sources', 'the system text', { system: [{ type: 'image', source: { type: 'url', url: URL_TEXT } }] }],
  ['anthropic_messages', 'files', 'an image', said({ type: 'image', source: { type: 'file', file_id: 'f' } })],
  ['anthropic_messages', 'files', 'an upload to a container', said({ type: 'container_upload', file_id: 'f' })],

  ['openai_responses', 'web_search', 'the tool', { tools: [{ type: 'web_search' }] }],
  ['openai_responses', 'web_search', 'the older tool', { tools: [{ type: 'web_search_preview_2025_03_11' }] }],
  ['openai_responses', 'web_search', 'a model that searches', { model: 'o4-mini-deep-research' }],
  ['openai_responses', 'code_execution', 'the interpreter', { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }],
  ['openai_responses', 'code_execution', 'a shell in a container', { tools: [{ type: 'shell', environment: { type: 'container_auto' } }] }],
  ['openai_responses', 'server_tools', 'images', { tools: [{ type: 'image_generation' }] }],
  ['openai_responses', 'server_tools', 'a tool that nobody knows', { tools: [{ type: 'new' }] }],
  ['openai_responses', 'server_tools', 'a search of tools at the provider', { tools: [{ type: 'tool_search' }] }],
  [
    'openai_responses',
    'web_search',
    'the tool in a namespace',
    { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] }] },
  ],
  [
    'openai_responses',
    'web_search',
    'the tool in what a search of tools found',
    input({ type: 'tool_search_output', tools: [{ type: 'web_search' }] }),
  ],
  [
    'openai_responses',
    'web_search',
    'the tool in a namespace of further tools',
    input({ type: 'additional_tools', role: 'developer', tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'web_search' }] }] }),
  ],
  [
    'openai_responses',
    'remote_mcp',
    'a server among further tools',
    input({ type: 'additional_tools', tools: [{ type: 'mcp', server_url: URL_TEXT }] }),
  ],
  ['openai_responses', 'remote_mcp', 'a server', { tools: [{ type: 'mcp', server_url: URL_TEXT }] }],
  ['openai_responses', 'url_sources', 'an image', input({ role: 'user', content: [{ type: 'input_image', image_url: URL_TEXT }] })],
  [
    'openai_responses',
    'url_sources',
    'a file',
    input({ type: 'message', role: 'user', content: [{ type: 'input_file', file_url: URL_TEXT }] }),
  ],
  [
    'openai_responses',
    'url_sources',
    'the output of a tool',
    input({ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: URL_TEXT }] }),
  ],
  ['openai_responses', 'files', 'an image', input({ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] })],
  ['openai_responses', 'files', 'the search in files', { tools: [{ type: 'file_search', vector_store_ids: ['v'] }] }],
  ['openai_responses', 'stored_conversations', 'an earlier answer', { previous_response_id: 'r' }],
  ['openai_responses', 'stored_conversations', 'a conversation', { conversation: { id: 'c' } }],
  ['openai_responses', 'stored_conversations', 'the wish to store', { store: true }],
  ['openai_responses', 'stored_conversations', 'a stored prompt', { prompt: { id: 'p' } }],
  ['openai_responses', 'stored_conversations', 'a reference', input({ type: 'item_reference', id: 'i' })],
  ['openai_responses', 'stored_conversations', 'a reference without a type', input({ id: 'i' })],
  ['openai_responses', 'background', 'work in the background', { background: true }],

  ['openai_chat', 'web_search', 'the option', { web_search_options: {} }],
  ['openai_chat', 'web_search', 'a model that searches', { model: 'gpt-4o-search-preview' }],
  ['openai_chat', 'web_search', 'a suffix that searches', { model: 'some/model:online' }],
  ['openai_chat', 'server_tools', 'a tool that nobody knows', { tools: [{ type: 'web_search' }] }],
  ['openai_chat', 'url_sources', 'an image', said({ type: 'image_url', image_url: { url: URL_TEXT } })],
  ['openai_chat', 'url_sources', 'an image as a text', said({ type: 'image_url', image_url: URL_TEXT })],
  ['openai_chat', 'files', 'a file', said({ type: 'file', file: { file_id: 'f' } })],
  ['openai_chat', 'stored_conversations', 'the wish to store', { store: true }],
  ['openai_chat', 'stored_conversations', 'an earlier sound', { messages: [{ role: 'assistant', audio: { id: 'a' } }] }],

  ['gemini', 'web_search', 'the tool', { tools: [{ googleSearch: {} }] }],
  ['gemini', 'web_search', 'the tool in the other spelling', { tools: [{ google_search: {} }] }],
  ['gemini', 'web_search', 'the tool beside functions', { tools: [{ functionDeclarations: [], googleSearchRetrieval: {} }] }],
  ['gemini', 'web_fetch', 'the tool', { tools: [{ urlContext: {} }] }],
  ['gemini', 'code_execution', 'the tool', { tools: [{ code_execution: {} }] }],
  ['gemini', 'remote_mcp', 'a server', { tools: [{ mcpServers: [{}] }] }],
  ['gemini', 'server_tools', 'maps', { tools: [{ googleMaps: {} }] }],
  ['gemini', 'files', 'the search in files', { tools: [{ fileSearch: {} }] }],
  ['gemini', 'files', 'an uploaded file', parts({ fileData: { fileUri: 'files/abc' } })],
  ['gemini', 'url_sources', 'an address', parts({ file_data: { file_uri: URL_TEXT } })],
  ['gemini', 'url_sources', 'an address beside an uploaded file', parts({ fileData: { fileUri: 'files/abc', file_uri: URL_TEXT } })],
  ['gemini', 'url_sources', 'an address in the system text', { system_instruction: { parts: [{ fileData: { fileUri: URL_TEXT } }] } }],
  ['gemini', 'stored_conversations', 'a cache', { cachedContent: 'cachedContents/c' }],
];
