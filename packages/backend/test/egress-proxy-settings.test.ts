import { describe, expect, it } from 'vitest';
import { egressProxySettingsSchema } from '../src/index.ts';

describe("settings of the operator's proxy", () => {
  it('have defaults that change nothing of what is judged', () => {
    expect(egressProxySettingsSchema.parse({ url: 'http://proxy.example.test:3128' })).toEqual({
      url: 'http://proxy.example.test:3128',
      credential: null,
      noProxy: [],
      mode: 'address',
      serverLink: false,
    });
  });

  it.each([
    ['a credential in the URL', { url: 'http://robot:secret-word@proxy.example.test:3128' }],
    ['another scheme', { url: 'https://proxy.example.test:3128' }],
    ['no port', { url: 'http://proxy.example.test' }],
    ['a credential as it is', { url: 'http://p.test:1', credential: 'robot:secret-word' }],
    ['a relative file', { url: 'http://p.test:1', credential: { file: 'login' } }],
    ['another mode', { url: 'http://p.test:1', mode: 'name' }],
    ['an address past it', { url: 'http://p.test:1', noProxy: ['10.0.0.1'] }],
    ['an unknown key', { url: 'http://p.test:1', noproxy: [] }],
  ])('are refused with %s, and the message holds no credential', (_what, settings) => {
    const parsed = egressProxySettingsSchema.safeParse(settings);
    expect(parsed.success).toBe(false);
    expect(parsed.error?.message).not.toContain('secret-word');
  });
});
