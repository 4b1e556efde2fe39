import { readdirSync, readFileSync } from 'node:fs';
import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { linksOf, MAX_RECIPE_BYTES, npmPackagesOf, parseRecipe } from '../../src/index.ts';

const EXAMPLES = new URL('../../../../examples/images/', import.meta.url);

const GOOD = {
  recipe: 1,
  summary: 'One.',
  base: { kind: 'suite', suite: 'debian:bookworm', packages: ['git'] },
  npm: [{ amd64: 'tool@1.0.0', into: '/opt/tool' }],
  links: { '/usr/local/bin/tool': { amd64: '/opt/tool/a', arm64: '/opt/tool/b' }, '/x': 'y' },
  environment: { LANG: 'C.UTF-8' },
};
const codeOfRecipe = (value: unknown): string | undefined => {
  try {
    parseRecipe(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)));
    return undefined;
  } catch (error) {
    return codeOf(error);
  }
};

describe('a recipe', () => {
  it('names packages and links for one processor', () => {
    const recipe = parseRecipe(Buffer.from(JSON.stringify(GOOD)));
    expect(npmPackagesOf(recipe, 'amd64')).toEqual([{ spec: 'tool@1.0.0', into: '/opt/tool' }]);
    expect(() => npmPackagesOf(recipe, 'arm64')).toThrow('no package for arm64');
    expect(linksOf(recipe, 'arm64')).toEqual({ '/usr/local/bin/tool': '/opt/tool/b', '/x': 'y' });
  });

  /** [what, the recipe] */
  const REFUSED: readonly (readonly [string, unknown])[] = [
    ['no JSON', '{'],
    ['too large', ' '.repeat(MAX_RECIPE_BYTES + 1)],
    ['of another version', { ...GOOD, recipe: 2 }],
    ['with an unknown field', { ...GOOD, run: 'curl' }],
    ['with an unknown base', { ...GOOD, base: { kind: 'image', name: 'x' } }],
    ['with a folder that leads out', { ...GOOD, npm: [{ amd64: 'a@1.0.0', into: '/opt/../etc' }] }],
    ['with a relative folder', { ...GOOD, npm: [{ amd64: 'a@1.0.0', into: 'opt' }] }],
    ['with a variable of no name', { ...GOOD, environment: { '': 'x' } }],
    ['with a variable that sets two', { ...GOOD, environment: { 'A=B': 'x' } }],
  ];
  it.each(REFUSED)('that is %s is refused', (_what, value) => {
    expect(codeOfRecipe(value)).toBe('recipe_malformed');
  });

  const names = readdirSync(EXAMPLES).filter((name) => name.endsWith('.json'));
  it.each(names)('of the examples can be used as it is: %s', (name) => {
    const recipe = parseRecipe(readFileSync(new URL(name, EXAMPLES)));
    for (const architecture of ['amd64', 'arm64'] as const) {
      for (const { spec } of npmPackagesOf(recipe, architecture)) expect(spec).toMatch(/@[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9-]+)?$/);
      const folders = npmPackagesOf(recipe, architecture).map(({ into }) => `${into}/`);
      for (const target of Object.values(linksOf(recipe, architecture)))
        expect(
          folders.some((folder) => target.startsWith(folder)),
          target,
        ).toBe(true);
    }
  });

  it('is there for each agent that the documents name', () => {
    expect(names.sort()).toEqual(['claude-code.json', 'codex.json']);
  });
});
