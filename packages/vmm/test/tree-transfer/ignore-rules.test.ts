import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ignoredPaths } from '../../src/index.ts';

const made: string[] = [];
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** What git itself says of a folder, or of an untracked file. */
function gitIgnores(files: readonly { dir: string; text: string }[], path: string, isFolder: boolean): boolean {
  const root = mkdtempSync(join(tmpdir(), 'firecrew-ignore-'));
  made.push(root);
  const env = { PATH: process.env.PATH ?? '', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', HOME: root };
  execFileSync('git', ['init', '-q', root], { env });
  mkdirSync(join(root, isFolder ? path : dirname(path)), { recursive: true });
  if (!isFolder) writeFileSync(join(root, path), '');
  for (const { dir, text } of files) {
    mkdirSync(join(root, dir), { recursive: true });
    writeFileSync(join(root, dir, '.gitignore'), text);
  }
  try {
    execFileSync('git', ['-C', root, 'check-ignore', '-q', path], { env });
    return true;
  } catch {
    return false;
  }
}

describe('ignored folders', () => {
  it.each([
    { text: 'dist', folder: 'dist', ignored: true },
    { text: 'dist', folder: 'a/b/dist', ignored: true },
    { text: '/dist', folder: 'a/dist', ignored: false },
    { text: 'a/dist', folder: 'a/dist', ignored: true },
    { text: 'a/dist', folder: 'b/a/dist', ignored: false },
    { text: 'dist/', folder: 'x/dist', ignored: true },
    { text: 'dist/*', folder: 'dist', ignored: false },
    { text: '*', folder: 'x/build', ignored: true },
    { text: 'out', folder: 'out/x/dist', ignored: true },
    { text: '**/dist', folder: 'a/b/dist', ignored: true },
    { text: 'a/**/dist', folder: 'a/dist', ignored: true },
    { text: 'a/**/dist', folder: 'a/b/c/dist', ignored: true },
    { text: 'a/**', folder: 'a/dist', ignored: true },
    { text: 'dist\n!dist', folder: 'dist', ignored: false },
    { text: '!dist\ndist', folder: 'dist', ignored: true },
    { text: 'out\n!out/dist', folder: 'out/dist', ignored: true },
    { text: 'd?st', folder: 'dist', ignored: true },
    { text: 'd[a-j]st', folder: 'dist', ignored: true },
    { text: 'd[!a-j]st', folder: 'dist', ignored: false },
    { text: '# dist', folder: 'dist', ignored: false },
    { text: '\\#x', folder: '#x', ignored: true },
    { text: 'dist  ', folder: 'dist', ignored: true },
    { text: 'DIST', folder: 'dist', ignored: false },
    { text: 'd.st', folder: 'dist', ignored: false },
    { text: 'di', folder: 'dist', ignored: false },
    { text: 'büild', folder: Buffer.from('büild').toString('latin1'), ignored: true },
  ])('the rule $text says $ignored of $folder, as git does', ({ text, folder, ignored }) => {
    const files = [{ dir: '', text }];
    expect(ignoredPaths(files)(folder, true)).toBe(ignored);
    expect(gitIgnores(files, Buffer.from(folder, 'latin1').toString('utf8'), true)).toBe(ignored);
  });

  it('rules of a deeper file win over those above', () => {
    const files = [
      { dir: '', text: 'dist' },
      { dir: 'a', text: '!dist' },
    ];
    for (const [folder, ignored] of [
      ['a/dist', false],
      ['dist', true],
      ['b/dist', true],
    ] as const) {
      expect(ignoredPaths(files)(folder, true)).toBe(ignored);
      expect(gitIgnores(files, folder, true)).toBe(ignored);
    }
  });

  it('no pattern is slow to match', () => {
    for (const glob of [`${'*a'.repeat(40)}b`, `${'**/a/'.repeat(40)}b`, `${'[a-z]*'.repeat(40)}0`])
      for (const path of ['a'.repeat(200), 'a/'.repeat(200).slice(0, -1)])
        expect(ignoredPaths([{ dir: '', text: glob }])(path, true)).toBe(false);
    expect(ignoredPaths([{ dir: '', text: '*a'.repeat(40) }])('a'.repeat(200), true)).toBe(true);
  });
});

describe('ignored files', () => {
  it.each([
    { text: 'dist/', path: 'dist', ignored: false },
    { text: 'dist/', path: 'dist/out.js', ignored: true },
    { text: 'dist/', path: 'a/dist/b/out.js', ignored: true },
    { text: '*.log', path: 'a/b.log', ignored: true },
    { text: '*.log', path: 'a/b.log.txt', ignored: false },
    { text: '*.log\n!keep.log', path: 'a/keep.log', ignored: false },
    { text: 'dist/\n!dist/keep.js', path: 'dist/keep.js', ignored: true },
    { text: 'dist/*\n!dist/keep.js', path: 'dist/keep.js', ignored: false },
    { text: '/*\n!/src', path: 'src/a.c', ignored: false },
    { text: '/*\n!/src', path: 'other/a.c', ignored: true },
    { text: '**', path: 'a/b', ignored: true },
    { text: 'a/**', path: 'a', ignored: false },
    { text: 'a/**/b', path: 'a/b', ignored: true },
    { text: 'a**b', path: 'axxb', ignored: true },
    { text: 'a**b', path: 'a/b', ignored: false },
    { text: '*a*b*c', path: 'xaxbxbxc', ignored: true },
    { text: '*a*b*c', path: 'xaxcxbx', ignored: false },
    { text: 'a?c', path: 'abc', ignored: true },
    { text: 'a?c', path: 'a/c', ignored: false },
    { text: '[]x]', path: ']', ignored: true },
    { text: '[!]x]', path: 'y', ignored: true },
    { text: 'x[-a]', path: 'x-', ignored: true },
    { text: 'x[a-]', path: 'x-', ignored: true },
    { text: 'x[ac-e]y', path: 'xdy', ignored: true },
    { text: 'x[ac-e]y', path: 'xby', ignored: false },
    { text: '\\!x', path: '!x', ignored: true },
    { text: 'a\\*', path: 'ab', ignored: false },
    { text: '.env*', path: '.env.local', ignored: true },
    { text: 'doc/frotz/', path: 'a/doc/frotz/x', ignored: false },
    { text: '//x', path: 'x', ignored: false },
  ])('the rule $text says $ignored of $path, as git does', ({ text, path, ignored }) => {
    const files = [{ dir: '', text }];
    expect(ignoredPaths(files)(path, false)).toBe(ignored);
    expect(gitIgnores(files, path, false)).toBe(ignored);
  });

  it('are never ignored by a rule that is not understood', () => {
    const said = (text: string) => ignoredPaths([{ dir: '', text }])('x1', false);
    expect(['x[[:digit:]]', 'x[1', `x1${'*'.repeat(1000)}`].map(said)).toEqual([false, false, false]);
    expect(['x*\n!x[[:digit:]]', `x*\n!${'?'.repeat(1001)}`].map(said)).toEqual([false, false]);
    expect(said('x*')).toBe(true);
  });
});
