import { describe, expect, it } from 'vitest';
import { judgeProbe, judgeRoutes } from '../src/commands/doctor-routes.ts';

const ROUTE = {
  format: 'anthropic_messages',
  upstream: 'https://api.model.test',
  credential: { file: '/etc/key' },
  features: [],
  passThrough: false,
  outputTokens: 5,
  viaProxy: true,
} as const;
const EDIT = 'edit it';

describe('the model routes of a home', () => {
  it('are told by backend and format, and by nothing of where they lead', () => {
    const found = judgeRoutes({ command: { ...ROUTE, features: [] } }, EDIT, () => undefined);
    expect(found).toEqual({ check: 'model routes', state: 'ok', detail: 'command (anthropic_messages)', fix: null });
  });

  it('are said to be none where none is named', () => {
    expect(judgeRoutes({}, EDIT, () => undefined)).toMatchObject({ state: 'ok', detail: expect.stringContaining('none') });
  });

  it.each([
    ['/etc/ca', { caFile: '/etc/ca' }],
    ['/etc/prices', { priceFile: '/etc/prices' }],
  ])('are a warning where %s is not there', (bad, more) => {
    const found = judgeRoutes({ command: { ...ROUTE, features: [], ...more } }, EDIT, (file) => (file === bad ? 'gone' : undefined));
    expect(found).toMatchObject({ state: 'warning', detail: `that of command names ${bad}: gone`, fix: EDIT });
  });
});

describe('the way to an upstream', () => {
  it.each([
    [true, 'direct', 'answers with verified TLS, directly'],
    [true, 'proxy', 'answers with verified TLS, through the egress proxy'],
    [false, 'direct', 'can be dialled, directly'],
  ] as const)('over TLS (%s) by %s is good where it %s', (isTls, way, text) => {
    const found = judgeProbe('command', isTls, way, { ok: true });
    expect(found).toEqual({
      check: 'upstream',
      state: 'ok',
      detail: `that of the model route of command ${text}; no call was made`,
      fix: null,
    });
  });

  it.each([
    ['dns', 'its name cannot be looked up (X)'],
    ['connect', 'it cannot be dialled (X)'],
    ['proxy', 'the egress proxy opens no tunnel to it (X)'],
    ['tls', 'it cannot show who it is (X)'],
  ] as const)('is a problem of its own where it ends at %s', (stage, text) => {
    const found = judgeProbe('command', true, 'direct', { ok: false, stage, detail: 'X' });
    expect(found).toMatchObject({ state: 'problem', detail: `that of the model route of command: ${text}` });
  });
});
