import { expect, it } from 'vitest';
import { npmEnvironment } from '../../src/image/npm-packages.ts';

const ENV = { npm_config_registry: 'https://r', NPM_CONFIG_USERCONFIG: '/n', HOME: '/h', https_proxy: 'p', SECRET: 's', PATH: '/bin' };

it("npm gets the caller's own settings and nothing else of the environment", () => {
  expect(npmEnvironment(ENV)).toEqual({ npm_config_registry: 'https://r', NPM_CONFIG_USERCONFIG: '/n', HOME: '/h', https_proxy: 'p' });
});

it('settings that npm itself handed on are those of a folder, and do not count', () => {
  for (const inside of [{ npm_command: 'exec' }, { npm_lifecycle_event: 'x' }])
    expect(npmEnvironment({ ...ENV, ...inside })).toEqual({ HOME: '/h', https_proxy: 'p' });
});
