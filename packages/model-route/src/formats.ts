/** Wire formats of model calls. `pass_through` is none: nothing of a request but its head is judged. */
export const MODEL_FORMATS = ['anthropic_messages', 'openai_responses', 'openai_chat', 'gemini', 'pass_through'] as const;
export type ModelFormat = (typeof MODEL_FORMATS)[number];

/**
 * What a request can ask the provider to do beyond answering, and is refused unless the operator names it: the provider would fetch
 * addresses, run code or keep data for the guest, past every egress rule of the host.
 */
export const MODEL_FEATURES = [
  'web_search',
  'web_fetch',
  'code_execution',
  'server_tools',
  'remote_mcp',
  'url_sources',
  'files',
  'stored_conversations',
  'background',
] as const;
export type ModelFeature = (typeof MODEL_FEATURES)[number];
