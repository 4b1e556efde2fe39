import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_PROTECTED_GLOBS, matchesGlob, parseGlob, parseGlobs } from '../src/index.ts';

describe('globs', () => {
  it.each([
    ['tests/**', 'tests/a.js', true],
    ['tests/**', 'tests/deep/a.js', true],
    ['tests/**', 'src/tests/a.js', false],
    ['tests', 'tests/a.js', true],
    ['tests/', 'src/tests/a.js', true],
    ['/tests', 'src/tests/a.js', false],
    ['/tests', 'tests/a.js', true],
    ['*.test.ts', 'src/deep/a.test.ts', true],
    ['*.test.ts', 'a.test.ts', true],
    ['*.test.ts', 'a.test.tsx', false],
    ['src/*.ts', 'src/a.ts', true],
    ['src/*.ts', 'src/deep/a.ts', false],
    ['src/**/a.ts', 'src/a.ts', true],
    ['src/**/a.ts', 'src/x/y/a.ts', true],
    ['**/a', 'a', true],
    ['a/**/**/b', 'a/b', true],
    ['te?t', 'test', true],
    ['te?t', 'tet', false],
    ['check.sh', 'check.sh/inner', true],
    ['check.sh', 'xcheck.sh', false],
    ['a.b', 'axb', false],
    ['*', '.hidden', true],
    ['package.json', 'packages/a/package.json', true],
    ['Test', 'test', false],
  ])('%s on %s is %s', (glob, path, expected) => {
    expect(matchesGlob(parseGlob(glob), path)).toBe(expected);
  });

  it.each(['', '/', '//', 'a//b', './a', 'a/../b', '..', '!a', 'a{b,c}', '[ab]', 'a\\b', 'a\0', 'a**', '**a/b'])('refuses %j', (glob) => {
    expect(() => parseGlob(glob)).toThrow(expect.objectContaining({ code: 'glob_invalid' }));
  });

  it('takes as many as the limit and refuses one more', () => {
    const globs = Array.from({ length: MAX_PROTECTED_GLOBS }, (_, at) => `f${at}`);
    expect(parseGlobs(globs)).toHaveLength(MAX_PROTECTED_GLOBS);
    expect(() => parseGlobs([...globs, 'x'])).toThrow(expect.objectContaining({ code: 'glob_invalid' }));
  });

  it('matches a literal path always and ends quickly on hostile patterns', () => {
    const part = fc.stringMatching(/^[a-z.]{1,8}$/).filter((text) => text !== '.' && text !== '..');
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) =>
        matchesGlob(parseGlob(`/${parts.join('/')}`), parts.join('/')),
      ),
    );
    const hostile = parseGlob(`${'**/'.repeat(60)}${'*a'.repeat(60)}b`);
    expect(matchesGlob(hostile, `${'a'.repeat(2000)}/`.repeat(20).slice(0, -1))).toBe(false);
  });
});
