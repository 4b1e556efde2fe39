import { type EgressProxySettings, egressProxySettingsSchema } from '@firecrew/backend';
import { describe, expect, it } from 'vitest';
import { chainVariable, takeChain } from '../../src/shim/egress-chain.ts';

const settings = (over: Partial<EgressProxySettings> = {}): EgressProxySettings =>
  egressProxySettingsSchema.parse({ url: 'http://proxy.example.test:3128', ...over });
const OF_VARIABLE = settings({ credential: { variable: 'COMPANY_LOGIN' } });
const env = () => ({ PATH: '/bin', HTTPS_PROXY: 'http://elsewhere.example:1', COMPANY_LOGIN: 'robot:word' });

describe("the operator's proxy of a shim", () => {
  it.each([
    ['none', null, {}],
    ['one that asks for no credential', settings(), {}],
    ['a credential in a file', settings({ credential: { file: '/etc/login' } }), {}],
    ['a variable', OF_VARIABLE, { COMPANY_LOGIN: 'robot:word' }],
    ['a variable that is not set', settings({ credential: { variable: 'OTHER' } }), {}],
  ])('with %s needs of the environment no more than that', (_what, chosen, needed) => {
    expect(chainVariable(chosen, env())).toEqual(needed);
  });

  it('takes a variable out of the environment, and nothing else', async () => {
    const given = env();
    const chain = takeChain(OF_VARIABLE, given);
    expect(await chain?.credential?.()).toBe('robot:word');
    expect(given).toEqual({ PATH: '/bin', HTTPS_PROXY: 'http://elsewhere.example:1' });
  });

  it('is that of the settings alone, whatever proxies the environment names', async () => {
    expect(takeChain(null, env())).toBeUndefined();
    expect(takeChain(settings(), env())?.chain).toMatchObject({ host: 'proxy.example.test', port: 3128 });
    await expect(takeChain(settings({ credential: { variable: 'OTHER' } }), env())?.credential?.()).rejects.toThrow(/OTHER is missing/);
  });
});
