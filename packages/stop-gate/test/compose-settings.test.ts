import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { composeSettings } from '../src/index.ts';

const gate = { script: '/run/fc/stop-hook', config: '/run/fc/gate', state: '/run/fc/state' };
const tap = { script: '/run/fc/tap-hook', file: '/run/fc/tap.jsonl' };

describe('the settings document', () => {
  it('holds gate and tap together', () => {
    expect(Object.keys(composeSettings({ gate, tap })?.hooks ?? {})).toEqual(['Stop', 'PostToolUse', 'PostToolUseFailure']);
  });

  it('is valid with each part alone, the absent part an absent key', () => {
    expect(Object.keys(composeSettings({ gate })?.hooks ?? {})).toEqual(['Stop']);
    expect(Object.keys(composeSettings({ tap })?.hooks ?? {})).toEqual(['PostToolUse', 'PostToolUseFailure']);
  });

  it('does not exist without parts', () => {
    expect(composeSettings({})).toBeUndefined();
  });

  it('keeps a repository from silencing the hooks', () => {
    expect(composeSettings({ gate })).toMatchObject({ disableAllHooks: false });
  });

  it.each(['relative', '/a b', '/a;b', '/a$(b)', "/a'b", '/a\nb', ''])('refuses the path %j', (script) => {
    expect(() => composeSettings({ gate: { ...gate, script } })).toThrow(expect.objectContaining({ code: 'hook_path_unsafe' }));
  });

  it('has exactly one writer in this package', () => {
    const folder = new URL('../src/', import.meta.url);
    const writers = readdirSync(folder).filter((name) => readFileSync(new URL(name, folder), 'utf8').includes('disableAllHooks:'));
    expect(writers).toEqual(['compose-settings.ts']);
  });
});
