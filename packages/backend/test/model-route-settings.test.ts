import { describe, expect, it } from 'vitest';
import { modelRoutesSchema } from '../src/index.ts';

const route = { format: 'anthropic_messages', upstream: 'https://api.model.test', credential: { file: '/etc/key' } };
const parse = (extra: Record<string, unknown>, name = 'command') => modelRoutesSchema.safeParse({ [name]: { ...route, ...extra } });

describe('a model route of a node', () => {
  it('has defaults that open nothing', () => {
    expect(parse({}).data).toEqual({ command: { ...route, features: [], passThrough: false, outputTokens: 32_000, viaProxy: true } });
  });

  it.each([
    ['a local server', { upstream: 'http://127.0.0.1:11434', credential: null }],
    ['a variable', { credential: { variable: 'MODEL_KEY' } }],
    ['features', { features: ['web_search', 'files'] }],
    ['models', { models: ['m-1'] }],
    ['a budget', { budget: { tokens: 1, money: 2.5 }, priceFile: '/etc/prices.json' }],
    ['a header of its own', { header: { name: 'api-key', prefix: '' } }],
    ['what is passed through', { format: 'pass_through', passThrough: true }],
  ])('may have %s', (_what, extra) => {
    expect(parse(extra).success).toBe(true);
  });

  it.each([
    ['an upstream without TLS', { upstream: 'http://api.model.test' }],
    ['an upstream with a user', { upstream: 'https://u:p@api.model.test' }],
    ['a credential in its settings', { credential: { value: 'sk-1' } }],
    ['two sources of a credential', { credential: { file: '/a', variable: 'B' } }],
    ['a relative file', { credential: { file: 'key' } }],
    ['a feature that there is not', { features: ['everything'] }],
    ['what is passed through by a typing error', { format: 'pass_through' }],
    ['the word for it without the format', { passThrough: true }],
    ['a budget where nothing is read', { format: 'pass_through', passThrough: true, budget: { tokens: 1 } }],
    ['features where nothing is read', { format: 'pass_through', passThrough: true, features: ['files'] }],
    ['models where nothing is read', { format: 'pass_through', passThrough: true, models: ['m'] }],
    ['money without prices', { budget: { money: 1 } }],
    ['a header of the connection', { header: { name: 'host', prefix: '' } }],
    ['a header that breaks out', { header: { name: 'x', prefix: 'a\r\nb: ' } }],
    ['an unknown key', { other: 1 }],
  ])('is refused with %s', (_what, extra) => {
    expect(parse(extra).success).toBe(false);
  });

  it.each(['', 'Command', 'command.x', '-command', 'a b', 'toString', '__proto__'])('is refused for %j, which names no backend', (name) => {
    const routes = JSON.parse(`{${JSON.stringify(name)}:${JSON.stringify(route)}}`);
    const parsed = modelRoutesSchema.safeParse(routes);
    expect(parsed.success && Object.keys(parsed.data).length > 0).toBe(false);
  });
});
