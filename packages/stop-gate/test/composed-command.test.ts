import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { composeSettings } from '../src/index.ts';
import { HookHome } from './hook-home.ts';

/** The command of the settings document, run by /bin/sh as a CLI does. */
describe('the command of the Stop hook in the settings', () => {
  let home: HookHome;
  beforeEach(() => {
    home = new HookHome({ name: 'sh', path: '/bin/sh', call: [] });
    home.install({ requireChange: false, check: 'test -e done' });
  });
  afterEach(() => home.remove());

  const call = () => {
    const settings = composeSettings({ gate: { script: home.at('stop-hook'), config: home.at('config'), state: home.at('state') } });
    return home.run(['-c', settings?.hooks.Stop?.[0]?.hooks[0]?.command ?? 'exit 99'], '{}');
  };

  it('passes on a pass and a refusal by JSON', () => {
    expect(call()).toMatchObject({ status: 0, stdout: expect.stringContaining('"decision":"block"') });
    home.write('done', '');
    expect(call()).toMatchObject({ status: 0, stdout: '' });
  });

  it('passes on a refusal by exit status', () => {
    home.install({ requireChange: false, check: 'exit 3' }, { answer: 'exit_2' });
    expect(call()).toMatchObject({ status: 2, stdout: expect.stringContaining('gate'), stderr: expect.stringContaining('status 3') });
  });

  it.each([
    ['the script is gone', () => rmSync(home.at('stop-hook'))],
    ['the configuration is gone', () => rmSync(home.at('config'), { recursive: true })],
    ['the state folder is gone', () => rmSync(home.at('state'), { recursive: true })],
  ])('refuses when %s, with words on both outputs, since one CLI reads the first and another the second', (_what, harm) => {
    harm();
    expect(call()).toMatchObject({ status: 2, stdout: 'gate\n', stderr: expect.stringContaining('did not let this stop pass') });
  });
});
