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
  'file_uploads',
  'batches',
  'stored_answers',
  'context_caches',
] as const;
export type ModelFeature = (typeof MODEL_FEATURES)[number];

/** Formats whose bodies are read. */
export type KnownFormat = Exclude<ModelFormat, 'pass_through'>;

/** Features that are paths of their own: a request has them by its path, whatever its body says. */
export const PATH_FEATURES = ['file_uploads', 'batches', 'stored_answers', 'context_caches'] as const satisfies readonly ModelFeature[];

const NOT_THERE: Readonly<Record<KnownFormat, readonly ModelFeature[]>> = {
  anthropic_messages: ['stored_conversations', 'background', 'stored_answers', 'context_caches'],
  openai_responses: ['web_fetch', 'context_caches'],
  openai_chat: ['web_fetch', 'code_execution', 'remote_mcp', 'background', 'context_caches'],
  gemini: ['background', 'stored_answers'],
};

/** Features that a format has. What it lacks, no word of policy opens: a request that tries it has another feature, or none that is known. */
export function featuresOf(format: KnownFormat): readonly ModelFeature[] {
  return MODEL_FEATURES.filter((feature) => !NOT_THERE[format].includes(feature));
}
