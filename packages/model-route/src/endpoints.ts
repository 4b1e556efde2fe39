import type { ModelFeature, ModelFormat } from './formats.ts';

/**
 * What a call is for: `generate` costs tokens and says how many, `count` and `list` cost none, `raw` is not looked into. Of what a feature adds,
 * `manage` reads or ends something stored and has no body, `store` writes something whose body is judged, `upload` brings a form that is
 * passed on unread, and `batch` orders many answers at once, of which nobody says here what they cost in the end.
 */
export type CallKind = 'generate' | 'count' | 'list' | 'raw' | 'manage' | 'store' | 'upload' | 'batch';

/** One method and path that a format has. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'any';
  /** Matches a whole path; of Gemini the group `model` is the model. */
  readonly path: RegExp;
  readonly kind: CallKind;
  /** Names of the query that go up; every other one but those of `dropped` refuses the request. */
  readonly query: readonly string[];
  /** Names of the query that are taken out: credentials of the guest. */
  readonly dropped: readonly string[];
  /** Whether answers come as events by the path alone. */
  readonly streams?: boolean;
  /** What policy has to name for it; absent where it is open on every route. */
  readonly feature?: ModelFeature;
}

const LISTING = ['limit', 'after', 'order', 'before_id', 'after_id', 'beta'];
const PAGING = ['pageSize', 'pageToken'];
const GEMINI_MODEL = '(?<model>[A-Za-z0-9._-]{1,128})';
/** The name that a provider gives to what it stores. */
const ID = '[A-Za-z0-9_-]{1,256}';

const gemini = (verb: string, kind: CallKind, streams = false): Endpoint => ({
  method: 'POST',
  path: new RegExp(`^/v1(?:beta)?/models/${GEMINI_MODEL}:${verb}$`),
  kind,
  query: ['alt'],
  dropped: ['key'],
  streams,
});

const list = (path: RegExp, query: readonly string[] = LISTING): Endpoint => ({
  method: 'GET',
  path,
  kind: 'list',
  query,
  dropped: ['key'],
});

const post = (path: RegExp, kind: CallKind, query: readonly string[] = []): Endpoint => ({
  method: 'POST',
  path,
  kind,
  query,
  dropped: [],
});

/** Makes the paths of one feature. A path is written with `ID` for a name of the provider's. */
const pathsOf =
  (feature: ModelFeature) =>
  (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, kind: CallKind, query: readonly string[] = []): Endpoint => ({
    method,
    path: new RegExp(`^${path.replaceAll('ID', ID)}$`),
    kind,
    query,
    dropped: ['key'],
    feature,
  });

const [uploads, batches, answers, caches] = [
  pathsOf('file_uploads'),
  pathsOf('batches'),
  pathsOf('stored_answers'),
  pathsOf('context_caches'),
];

/** Files and batches of both formats of OpenAI, whose batches are made of files. */
const OPENAI_STORES: readonly Endpoint[] = [
  uploads('POST', '/v1/files', 'upload'),
  uploads('GET', '/v1/files', 'manage', ['purpose', 'limit', 'order', 'after']),
  uploads('GET', '/v1/files/ID(?:/content)?', 'manage'),
  uploads('DELETE', '/v1/files/ID', 'manage'),
  batches('POST', '/v1/batches', 'batch'),
  batches('GET', '/v1/batches', 'manage', ['limit', 'after']),
  batches('GET', '/v1/batches/ID', 'manage'),
  batches('POST', '/v1/batches/ID/cancel', 'manage'),
];
const ITEMS_QUERY = ['limit', 'order', 'after', 'before', 'include'];

/** The closed list of each format. */
export const ENDPOINTS: Readonly<Record<ModelFormat, readonly Endpoint[]>> = {
  anthropic_messages: [
    post(/^\/v1\/messages$/, 'generate', ['beta']),
    post(/^\/v1\/messages\/count_tokens$/, 'count', ['beta']),
    list(/^\/v1\/models(?:\/[A-Za-z0-9._-]{1,128})?$/),
    uploads('POST', '/v1/files', 'upload', ['beta']),
    uploads('GET', '/v1/files', 'manage', ['limit', 'before_id', 'after_id', 'beta']),
    uploads('GET', '/v1/files/ID(?:/content)?', 'manage', ['beta']),
    uploads('DELETE', '/v1/files/ID', 'manage', ['beta']),
    batches('POST', '/v1/messages/batches', 'batch', ['beta']),
    batches('GET', '/v1/messages/batches', 'manage', ['limit', 'before_id', 'after_id', 'beta']),
    batches('GET', '/v1/messages/batches/ID(?:/results)?', 'manage', ['beta']),
    batches('POST', '/v1/messages/batches/ID/cancel', 'manage', ['beta']),
    batches('DELETE', '/v1/messages/batches/ID', 'manage', ['beta']),
  ],
  openai_responses: [
    post(/^\/v1\/responses$/, 'generate'),
    list(/^\/v1\/models(?:\/[A-Za-z0-9._:-]{1,128})?$/),
    ...OPENAI_STORES,
    answers('GET', '/v1/responses/ID', 'manage', ['include', 'stream', 'starting_after', 'include_obfuscation']),
    answers('DELETE', '/v1/responses/ID', 'manage'),
    answers('POST', '/v1/responses/ID/cancel', 'manage'),
    answers('GET', '/v1/responses/ID/input_items', 'manage', ITEMS_QUERY),
    answers('POST', '/v1/conversations', 'store'),
    answers('GET', '/v1/conversations/ID', 'manage'),
    answers('POST', '/v1/conversations/ID', 'store'),
    answers('DELETE', '/v1/conversations/ID', 'manage'),
    answers('POST', '/v1/conversations/ID/items', 'store', ['include']),
    answers('GET', '/v1/conversations/ID/items', 'manage', ITEMS_QUERY),
    answers('GET', '/v1/conversations/ID/items/ID', 'manage', ['include']),
    answers('DELETE', '/v1/conversations/ID/items/ID', 'manage'),
  ],
  openai_chat: [
    post(/^\/v1\/chat\/completions$/, 'generate'),
    list(/^\/v1\/models(?:\/[A-Za-z0-9._:-]{1,128})?$/),
    ...OPENAI_STORES,
    answers('GET', '/v1/chat/completions', 'manage', ['model', 'limit', 'order', 'after']),
    answers('GET', '/v1/chat/completions/ID(?:/messages)?', 'manage', ['limit', 'order', 'after']),
    answers('POST', '/v1/chat/completions/ID', 'store'),
    answers('DELETE', '/v1/chat/completions/ID', 'manage'),
  ],
  gemini: [
    gemini('generateContent', 'generate'),
    gemini('streamGenerateContent', 'generate', true),
    gemini('countTokens', 'count'),
    list(new RegExp(`^/v1(?:beta)?/models(?:/${GEMINI_MODEL})?$`), PAGING),
    uploads('GET', '/v1beta/files', 'manage', PAGING),
    uploads('GET', '/v1beta/files/ID(?::download)?', 'manage', ['alt']),
    uploads('DELETE', '/v1beta/files/ID', 'manage'),
    { ...gemini('batchGenerateContent', 'batch'), feature: 'batches' },
    batches('GET', '/v1beta/batches', 'manage', PAGING),
    batches('GET', '/v1beta/batches/ID', 'manage'),
    batches('POST', '/v1beta/batches/ID:cancel', 'manage'),
    batches('DELETE', '/v1beta/batches/ID', 'manage'),
    caches('POST', '/v1beta/cachedContents', 'store'),
    caches('GET', '/v1beta/cachedContents', 'manage', PAGING),
    caches('GET', '/v1beta/cachedContents/ID', 'manage'),
    caches('PATCH', '/v1beta/cachedContents/ID', 'store', ['updateMask']),
    caches('DELETE', '/v1beta/cachedContents/ID', 'manage'),
  ],
  pass_through: [{ method: 'any', path: /^\//, kind: 'raw', query: [], dropped: [] }],
};
