import { describe, expect, it } from 'vitest';
import { decideHead, featuresOf, MODEL_FEATURES, MODEL_FORMATS, type ModelFeature } from '../src/index.ts';
import { BASE, type Format, ROWS, URL_TEXT } from './feature-rows.ts';
import { FORM_TYPE, type Judged, judgeRequest, LACKED_ROWS, PATH_ROWS, type PathRow } from './path-rows.ts';

const FORMATS = MODEL_FORMATS.filter((format): format is Format => format !== 'pass_through');
const CELLS = FORMATS.flatMap((format) => MODEL_FEATURES.map((feature) => [format, feature] as const));
/** A row with its words in front, for the name of its test. */
const titled = (row: PathRow) => [row[0], row[1], row[2], row[3], row] as const;
/** All features that are judged in bodies. */
const OF_BODIES = MODEL_FEATURES.filter((feature) => !PATH_ROWS.some(([, of]) => of === feature));

describe('the table of formats and features', () => {
  it.each(CELLS)('has a case for %s and %s', (format, feature) => {
    const isNamed = [...ROWS, ...PATH_ROWS, FILE_BATCHES[0], FILE_BATCHES[1]].some(([of, what]) => of === format && what === feature);
    const isLacked = LACKED_ROWS.some(([of, what]) => of === format && what === feature);
    // A feature is there or is not: its case says which.
    expect({ isNamed, isLacked }).toEqual({
      isNamed: featuresOf(format).includes(feature),
      isLacked: !featuresOf(format).includes(feature),
    });
  });

  it.each(LACKED_ROWS.map(titled))('opens nothing of %s by naming %s: %s %s', (_format, _feature, _method, _target, row) => {
    expect(judgeRequest(row, { features: [row[1]] })).toMatchObject({ verdict: 'refused' });
    expect(JSON.stringify(judgeRequest(row))).not.toContain(`"feature":"${row[1]}"`);
  });
});

describe('a path that is a feature', () => {
  it.each(PATH_ROWS.map(titled))(
    'of %s is refused for %s by its name, and passes where policy names it: %s %s',
    (_format, _feature, _method, _target, row) => {
      const others = MODEL_FEATURES.filter((feature) => feature !== row[1]);
      for (const features of [[], others])
        expect(judgeRequest(row, { features })).toMatchObject({
          verdict: 'refused',
          reason: 'feature_refused',
          feature: row[1],
          message: expect.stringContaining(row[1]),
        });
      expect(judgeRequest(row, { features: [row[1]] })).toMatchObject({ verdict: 'allowed' });
    },
  );

  it('takes no body where it reads or ends something', () => {
    const rules = { format: 'anthropic_messages', features: MODEL_FEATURES, bodyMaxBytes: 10, uploadMaxBytes: 10 } as const;
    const rawHeaders = ['Content-Type', 'application/json', 'Content-Length', '2'];
    for (const [method, target] of [
      ['DELETE', '/v1/files/f'],
      ['POST', '/v1/messages/batches/b/cancel'],
    ] as const)
      expect(decideHead({ method, target, rawHeaders }, rules)).toMatchObject({ verdict: 'refused', reason: 'bad_request' });
  });
});

describe('an upload', () => {
  const upload = (type: string, length = '100', features: readonly ModelFeature[] = ['file_uploads']) =>
    decideHead(
      { method: 'POST', target: '/v1/files', rawHeaders: ['Content-Type', type, 'Content-Length', length, 'X-Other', 'y'] },
      { format: 'openai_chat', features, bodyMaxBytes: 1_000, uploadMaxBytes: 5_000 },
    );

  it.each([FORM_TYPE, 'multipart/form-data; boundary="a b"', 'Multipart/Form-Data;boundary=----x1'])(
    'as %s goes up as it is, up to its own bound',
    (type) => {
      expect(upload(type, '5000')).toMatchObject({ verdict: 'allowed', kind: 'upload', headers: [['content-type', type]] });
      expect(upload(type, '5001')).toMatchObject({ verdict: 'refused', reason: 'body_too_large' });
    },
  );

  it.each([
    'application/json',
    'multipart/form-data',
    'multipart/mixed; boundary=x',
    'multipart/form-data; boundary=x; charset=utf-7',
    `multipart/form-data; boundary=${'x'.repeat(71)}`,
  ])('as %s is refused', (type) => {
    expect(upload(type)).toMatchObject({ verdict: 'refused', reason: 'content_type_refused' });
  });
});

const anthropicBatch = (...params: Record<string, unknown>[]): PathRow => [
  'anthropic_messages',
  'batches',
  'POST',
  '/v1/messages/batches',
  { requests: params.map((item, index) => ({ custom_id: `${index}`, params: item })) },
];
const geminiBatch = (...requests: Record<string, unknown>[]): PathRow => [
  'gemini',
  'batches',
  'POST',
  '/v1beta/models/m:batchGenerateContent',
  { batch: { input_config: { requests: { requests: requests.map((request) => ({ request })) } } } },
];

/** Batches whose requests lie in a file. */
const FILE_BATCHES: readonly [PathRow, PathRow, PathRow] = [
  ['openai_responses', 'batches', 'POST', '/v1/batches', { input_file_id: 'f', endpoint: '/v1/responses', completion_window: '24h' }],
  ['openai_chat', 'batches', 'POST', '/v1/batches', { input_file_id: 'f', endpoint: '/v1/chat/completions', completion_window: '24h' }],
  ['gemini', 'batches', 'POST', '/v1beta/models/m:batchGenerateContent', { batch: { inputConfig: { fileName: 'files/f' } } }],
];

describe('a batch', () => {
  it('is judged request by request: what one asks for is asked by all', () => {
    const { anthropic_messages: message, gemini: content } = BASE;
    const rows: readonly (readonly [PathRow, ModelFeature])[] = [
      [anthropicBatch(message, { ...message, tools: [{ type: 'web_search_20250305', name: 'w' }] }), 'web_search'],
      [geminiBatch(content, { contents: [{ parts: [{ fileData: { fileUri: URL_TEXT } }] }] }), 'url_sources'],
    ];
    for (const [row, feature] of rows) {
      expect(judgeRequest(row, { features: ['batches'] })).toMatchObject({
        verdict: 'refused',
        reason: 'feature_refused',
        findings: [{ feature }],
      });
      expect(judgeRequest(row, { features: ['batches', feature] })).toMatchObject({ verdict: 'allowed' });
    }
  });

  it('holds each of its requests, with a limit of output where one has none', () => {
    const { max_tokens: _, ...open } = BASE.anthropic_messages;
    const result = judgeRequest(anthropicBatch(BASE.anthropic_messages, { ...open, model: 'n' }), { features: ['batches'], cap: 70 });
    expect(result).toMatchObject({
      model: undefined,
      asks: [
        { model: 'm', outputTokens: 5 },
        { model: 'n', outputTokens: 70 },
      ],
    });
    expect('text' in result && JSON.parse(result.text).requests[1].params.max_tokens).toBe(70);
    expect(judgeRequest(geminiBatch(BASE.gemini, BASE.gemini), { features: ['batches'], cap: 70 })).toMatchObject({
      model: 'm',
      asks: [{ outputTokens: 70 }, { outputTokens: 70 }],
    });
  });

  it('asks listed models alone, each of them, and of the path no other', () => {
    const row = anthropicBatch(BASE.anthropic_messages, { ...BASE.anthropic_messages, model: 'n' });
    const of = (models: readonly string[]): Judged => ({ features: ['batches'], models });
    expect(judgeRequest(row, of(['m', 'n']))).toMatchObject({ verdict: 'allowed' });
    expect(judgeRequest(row, of(['m']))).toMatchObject({ verdict: 'refused', reason: 'model_not_listed' });
    expect(judgeRequest(geminiBatch({ ...BASE.gemini, model: 'models/m' }), of(['m']))).toMatchObject({ verdict: 'allowed' });
    expect(judgeRequest(geminiBatch({ ...BASE.gemini, model: 'models/n' }), of(['m']))).toMatchObject({ reason: 'bad_model' });
  });

  it.each([
    ['no params', { requests: [{ custom_id: 'a' }] }],
    ['a field of nobody', { requests: [{ custom_id: 'a', params: BASE.anthropic_messages, more: 1 }] }],
    ['a field of nobody at its top', { requests: [], more: 1 }],
  ])('with %s is refused', (_what, body) => {
    expect(
      judgeRequest(['anthropic_messages', 'batches', 'POST', '/v1/messages/batches', body], { features: MODEL_FEATURES }),
    ).toMatchObject({
      verdict: 'refused',
      reason: 'field_not_listed',
    });
  });

  it.each(FILE_BATCHES.map(titled))(
    'of %s in a file may ask for anything, so that everything must be named (%s, %s %s)',
    (_format, _feature, _method, _target, row) => {
      const own = featuresOf(row[0]);
      const ofBodies = own.filter((feature) => OF_BODIES.includes(feature));
      expect(judgeRequest(row, { features: own })).toMatchObject({ verdict: 'allowed', asks: null });
      for (const feature of ['batches' as const, ...ofBodies])
        expect(judgeRequest(row, { features: own.filter((item) => item !== feature) })).toMatchObject({ reason: 'feature_refused' });
      expect(judgeRequest(row, { features: own, models: ['m'] })).toMatchObject({ verdict: 'refused', reason: 'model_not_listed' });
    },
  );

  it.each(['/v1/embeddings', '/v1/chat/completions', undefined])('of a file for %j is refused on a route of responses', (endpoint) => {
    const row: PathRow = ['openai_responses', 'batches', 'POST', '/v1/batches', { input_file_id: 'f', endpoint }];
    expect(judgeRequest(row, { features: MODEL_FEATURES })).toMatchObject({ verdict: 'refused', reason: 'field_not_listed' });
  });
});

describe('what is written to a store of the provider', () => {
  const image = [{ role: 'user', content: [{ type: 'input_image', image_url: URL_TEXT }] }];
  it.each<readonly [PathRow, ModelFeature]>([
    [['openai_responses', 'stored_answers', 'POST', '/v1/conversations', { items: image }], 'url_sources'],
    [['openai_responses', 'stored_answers', 'POST', '/v1/conversations/c/items', { items: image }], 'url_sources'],
    [['gemini', 'context_caches', 'POST', '/v1beta/cachedContents', { model: 'models/m', tools: [{ googleSearch: {} }] }], 'web_search'],
  ])('is judged as a request is: %j asks for %s too', (row, feature) => {
    expect(judgeRequest(row, { features: [row[1]] })).toMatchObject({ reason: 'feature_refused', findings: [{ feature }] });
    expect(judgeRequest(row, { features: [row[1], feature] })).toMatchObject({ verdict: 'allowed' });
  });

  it('is, as a context, for listed models alone, and costs what nobody can say', () => {
    const row: PathRow = ['gemini', 'context_caches', 'POST', '/v1beta/cachedContents', { model: 'models/m', ...BASE.gemini }];
    expect(judgeRequest(row, { features: ['context_caches'], models: ['m'] })).toMatchObject({
      verdict: 'allowed',
      model: 'm',
      asks: null,
    });
    expect(judgeRequest(row, { features: ['context_caches'], models: ['n'] })).toMatchObject({ reason: 'model_not_listed' });
  });
});
