import { describe, expect, it } from 'vitest';
import { judgeRoutes } from '../src/commands/doctor-routes.ts';

const ROUTE = {
  format: 'anthropic_messages',
  upstream: 'https://api.model.test',
  credential: { file: '/etc/key' },
  features: [],
  passThrough: false,
  outputTokens: 5,
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
    ['/etc/key', {}],
    ['/etc/ca', { caFile: '/etc/ca' }],
    ['/etc/prices', { priceFile: '/etc/prices' }],
  ])('are a warning where %s is not there', (bad, more) => {
    const found = judgeRoutes({ command: { ...ROUTE, features: [], ...more } }, EDIT, (file) => (file === bad ? 'gone' : undefined));
    expect(found).toMatchObject({ state: 'warning', detail: `that of command names ${bad}: gone`, fix: EDIT });
  });
});
