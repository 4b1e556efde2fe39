import type { ModelFormat } from './formats.ts';

/** What a call is for: `generate` costs tokens, `count` and `list` do not, `raw` is not looked into. */
export type CallKind = 'generate' | 'count' | 'list' | 'raw';

/** One method and path that a format has. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'any';
  /** Matches a whole path; of Gemini its first group is the model. */
  readonly path: RegExp;
  readonly kind: CallKind;
  /** Names of the query that go up; every other one but those of `dropped` refuses the request. */
  readonly query: readonly string[];
  /** Names of the query that are taken out: credentials of the guest. */
  readonly dropped: readonly string[];
  /** Whether answers come as events by the path alone. */
  readonly streams?: boolean;
}

const LISTING = ['limit', 'after', 'order', 'before_id', 'after_id', 'beta'];
const GEMINI_MODEL = '([A-Za-z0-9._-]{1,128})';

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

/** The closed list of each format; batches, files and stored answers are on none. */
export const ENDPOINTS: Readonly<Record<ModelFormat, readonly Endpoint[]>> = {
  anthropic_messages: [
    post(/^\/v1\/messages$/, 'generate', ['beta']),
    post(/^\/v1\/messages\/count_tokens$/, 'count', ['beta']),
    list(/^\/v1\/models(?:\/[A-Za-z0-9._-]{1,128})?$/),
  ],
  openai_responses: [post(/^\/v1\/responses$/, 'generate'), list(/^\/v1\/models(?:\/[A-Za-z0-9._:-]{1,128})?$/)],
  openai_chat: [post(/^\/v1\/chat\/completions$/, 'generate'), list(/^\/v1\/models(?:\/[A-Za-z0-9._:-]{1,128})?$/)],
  gemini: [
    gemini('generateContent', 'generate'),
    gemini('streamGenerateContent', 'generate', true),
    gemini('countTokens', 'count'),
    list(new RegExp(`^/v1(?:beta)?/models(?:/${GEMINI_MODEL})?$`), ['pageSize', 'pageToken']),
  ],
  pass_through: [{ method: 'any', path: /^\//, kind: 'raw', query: [], dropped: [] }],
};
