import { checkBody, decideHead, type ModelFeature } from '../src/index.ts';
import { BASE, type Format, URL_TEXT } from './feature-rows.ts';

export const FORM_TYPE = 'multipart/form-data; boundary=xyz';
const { anthropic_messages: MESSAGE, gemini: CONTENT } = BASE;

/** A request that has a feature by its path: method, target, and the body that is judged, if any. */
export type PathRow = readonly [Format, ModelFeature, string, string, Record<string, unknown>?];

/** Every path of every feature that is one. */
export const PATH_ROWS: readonly PathRow[] = [
  ['anthropic_messages', 'file_uploads', 'POST', '/v1/files?beta=true'],
  ['anthropic_messages', 'file_uploads', 'GET', '/v1/files?limit=5'],
  ['anthropic_messages', 'file_uploads', 'GET', '/v1/files/file_1'],
  ['anthropic_messages', 'file_uploads', 'GET', '/v1/files/file_1/content'],
  ['anthropic_messages', 'file_uploads', 'DELETE', '/v1/files/file_1'],
  ['anthropic_messages', 'batches', 'POST', '/v1/messages/batches', { requests: [{ custom_id: 'a', params: MESSAGE }] }],
  ['anthropic_messages', 'batches', 'GET', '/v1/messages/batches?limit=5'],
  ['anthropic_messages', 'batches', 'GET', '/v1/messages/batches/b_1'],
  ['anthropic_messages', 'batches', 'GET', '/v1/messages/batches/b_1/results'],
  ['anthropic_messages', 'batches', 'POST', '/v1/messages/batches/b_1/cancel'],
  ['anthropic_messages', 'batches', 'DELETE', '/v1/messages/batches/b_1'],
  ...(['openai_responses', 'openai_chat'] as const).flatMap((format): PathRow[] => [
    [format, 'file_uploads', 'POST', '/v1/files'],
    [format, 'file_uploads', 'GET', '/v1/files?purpose=batch'],
    [format, 'file_uploads', 'GET', '/v1/files/file-1'],
    [format, 'file_uploads', 'GET', '/v1/files/file-1/content'],
    [format, 'file_uploads', 'DELETE', '/v1/files/file-1'],
    [format, 'batches', 'GET', '/v1/batches?limit=5'],
    [format, 'batches', 'GET', '/v1/batches/b_1'],
    [format, 'batches', 'POST', '/v1/batches/b_1/cancel'],
  ]),
  ['openai_responses', 'stored_answers', 'GET', '/v1/responses/r_1?stream=true'],
  ['openai_responses', 'stored_answers', 'DELETE', '/v1/responses/r_1'],
  ['openai_responses', 'stored_answers', 'POST', '/v1/responses/r_1/cancel'],
  ['openai_responses', 'stored_answers', 'GET', '/v1/responses/r_1/input_items?limit=2'],
  ['openai_responses', 'stored_answers', 'POST', '/v1/conversations', { items: [{ role: 'user', content: 'hi' }], metadata: { a: 'b' } }],
  ['openai_responses', 'stored_answers', 'GET', '/v1/conversations/c_1'],
  ['openai_responses', 'stored_answers', 'POST', '/v1/conversations/c_1', { metadata: { a: 'b' } }],
  ['openai_responses', 'stored_answers', 'DELETE', '/v1/conversations/c_1'],
  ['openai_responses', 'stored_answers', 'POST', '/v1/conversations/c_1/items', { items: [{ role: 'user', content: 'hi' }] }],
  ['openai_responses', 'stored_answers', 'GET', '/v1/conversations/c_1/items?limit=2'],
  ['openai_responses', 'stored_answers', 'GET', '/v1/conversations/c_1/items/i_1'],
  ['openai_responses', 'stored_answers', 'DELETE', '/v1/conversations/c_1/items/i_1'],
  ['openai_chat', 'stored_answers', 'GET', '/v1/chat/completions?limit=2'],
  ['openai_chat', 'stored_answers', 'GET', '/v1/chat/completions/c_1'],
  ['openai_chat', 'stored_answers', 'GET', '/v1/chat/completions/c_1/messages'],
  ['openai_chat', 'stored_answers', 'POST', '/v1/chat/completions/c_1', { metadata: { a: 'b' } }],
  ['openai_chat', 'stored_answers', 'DELETE', '/v1/chat/completions/c_1'],
  ['gemini', 'file_uploads', 'GET', '/v1beta/files?pageSize=5'],
  ['gemini', 'file_uploads', 'GET', '/v1beta/files/f1'],
  ['gemini', 'file_uploads', 'GET', '/v1beta/files/f1:download?alt=media'],
  ['gemini', 'file_uploads', 'DELETE', '/v1beta/files/f1'],
  [
    'gemini',
    'batches',
    'POST',
    '/v1beta/models/m:batchGenerateContent',
    { batch: { displayName: 'b', inputConfig: { requests: { requests: [{ request: CONTENT, metadata: { key: 'a' } }] } } } },
  ],
  ['gemini', 'batches', 'GET', '/v1beta/batches?pageSize=5'],
  ['gemini', 'batches', 'GET', '/v1beta/batches/b1'],
  ['gemini', 'batches', 'POST', '/v1beta/batches/b1:cancel'],
  ['gemini', 'batches', 'DELETE', '/v1beta/batches/b1'],
  ['gemini', 'context_caches', 'POST', '/v1beta/cachedContents', { model: 'models/m', ...CONTENT, ttl: '60s' }],
  ['gemini', 'context_caches', 'GET', '/v1beta/cachedContents'],
  ['gemini', 'context_caches', 'GET', '/v1beta/cachedContents/c1'],
  ['gemini', 'context_caches', 'PATCH', '/v1beta/cachedContents/c1?updateMask=ttl', { ttl: '60s' }],
  ['gemini', 'context_caches', 'DELETE', '/v1beta/cachedContents/c1'],
];

/** The nearest that a request comes to a feature that its format lacks. */
export const LACKED_ROWS: readonly PathRow[] = [
  ['anthropic_messages', 'stored_conversations', 'POST', '/v1/messages', { ...MESSAGE, store: true }],
  ['anthropic_messages', 'background', 'POST', '/v1/messages', { ...MESSAGE, background: true }],
  ['anthropic_messages', 'stored_answers', 'GET', '/v1/messages/m_1'],
  ['anthropic_messages', 'context_caches', 'POST', '/v1/cachedContents', {}],
  ['openai_responses', 'web_fetch', 'POST', '/v1/responses', { ...BASE.openai_responses, tools: [{ type: 'web_fetch' }] }],
  ['openai_responses', 'context_caches', 'POST', '/v1/cachedContents', {}],
  ['openai_chat', 'web_fetch', 'POST', '/v1/chat/completions', { ...BASE.openai_chat, tools: [{ type: 'web_fetch' }] }],
  ['openai_chat', 'code_execution', 'POST', '/v1/chat/completions', { ...BASE.openai_chat, tools: [{ type: 'code_interpreter' }] }],
  ['openai_chat', 'remote_mcp', 'POST', '/v1/chat/completions', { ...BASE.openai_chat, tools: [{ type: 'mcp', server_url: URL_TEXT }] }],
  ['openai_chat', 'background', 'POST', '/v1/chat/completions', { ...BASE.openai_chat, background: true }],
  ['openai_chat', 'context_caches', 'POST', '/v1/cachedContents', {}],
  ['gemini', 'background', 'POST', '/v1beta/models/m:generateContent', { ...CONTENT, background: true }],
  ['gemini', 'stored_answers', 'GET', '/v1beta/responses/r_1'],
];

export interface Judged {
  readonly features?: readonly ModelFeature[];
  readonly models?: readonly string[] | null;
  readonly cap?: number | null;
}

/** Judges a request from its head to its body, as a route does. */
export function judgeRequest([format, , method, target, body]: PathRow, { features = [], models = null, cap = null }: Judged = {}) {
  const isUpload = method === 'POST' && /\/files(?:\?|$)/.test(target);
  const type = isUpload ? FORM_TYPE : 'application/json';
  const rawHeaders = isUpload || body !== undefined ? ['Content-Type', type, 'Content-Length', '100'] : [];
  const head = decideHead({ method, target, rawHeaders }, { format, features, bodyMaxBytes: 1_000, uploadMaxBytes: 5_000 });
  if (head.verdict === 'refused' || body === undefined) return head;
  const { kind, model, streams } = head;
  return checkBody(new TextEncoder().encode(JSON.stringify(body)), { format, kind, features, models, outputCap: cap, model, streams });
}
