import { describe, expect, it } from 'vitest';
import { buildGuestEnvironment, NO_PROXY_NAMES } from '../src/index.ts';

const url = 'http://127.0.0.1:3128';
const up = { egressUp: true, proxyPort: 3128 };

describe("the guest's environment", () => {
  it('sets each proxy variable in both spellings with egress up, also without a caller', () => {
    expect(buildGuestEnvironment(up)).toEqual({
      HTTPS_PROXY: url,
      https_proxy: url,
      HTTP_PROXY: url,
      http_proxy: url,
      NO_PROXY: NO_PROXY_NAMES,
      no_proxy: NO_PROXY_NAMES,
    });
  });

  it.each(['HTTPS_PROXY', 'https_proxy', 'Https_Proxy'])("lets the caller's %s win, and adds no second spelling", (name) => {
    const environment = buildGuestEnvironment({ ...up, caller: { [name]: 'http://mine' } });
    expect(Object.entries(environment).filter(([key]) => key.toUpperCase() === 'HTTPS_PROXY')).toEqual([[name, 'http://mine']]);
    expect(environment.HTTP_PROXY).toBe(url);
  });

  it("sets none with egress down, and drops the image's own in any spelling", () => {
    expect(buildGuestEnvironment({ egressUp: false, proxyPort: 3128, image: { http_proxy: 'x', ALL_PROXY: 'y', PATH: '/bin' } })).toEqual({
      PATH: '/bin',
    });
    expect(buildGuestEnvironment({ ...up, image: { Http_Proxy: 'x' } })).not.toHaveProperty('Http_Proxy');
  });

  it('lets caller win over image, and the platform over both', () => {
    const environment = buildGuestEnvironment({
      egressUp: false,
      image: { A: 'image', B: 'image', C: 'image' },
      caller: { B: 'caller', C: 'caller' },
      platform: { C: 'platform' },
      modelPort: 4000,
    });
    expect(environment).toEqual({ A: 'image', B: 'caller', C: 'platform', FIRECREW_MODEL_URL: 'http://127.0.0.1:4000' });
  });
});
