import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ignoredFolders } from '../../src/index.ts';

const made: string[] = [];
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** What git itself says of a folder that holds an untracked file. */
function gitIgnores(files: readonly { dir: string; text: string }[], folder: string): boolean {
  const root = mkdtempSync(join(tmpdir(), 'firecrew-ignore-'));
  made.push(root);
  const env = { PATH: process.env.PATH ?? '', GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', HOME: root };
  execFileSync('git', ['init', '-q', root], { env });
  mkdirSync(join(root, folder), { recursive: true });
  for (const { dir, text } of files) {
    const path = join(root, dir, '.gitignore');
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  try {
    execFileSync('git', ['-C', root, 'check-ignore', '-q', folder], { env });
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
    expect(ignoredFolders(files)(folder)).toBe(ignored);
    expect(gitIgnores(files, Buffer.from(folder, 'latin1').toString('utf8'))).toBe(ignored);
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
      expect(ignoredFolders(files)(folder)).toBe(ignored);
      expect(gitIgnores(files, folder)).toBe(ignored);
    }
  });

  it('a pattern made to be slow is given up', () => {
    expect(ignoredFolders([{ dir: '', text: `${'*a'.repeat(40)}b` }])('a'.repeat(200))).toBe(false);
  });
});
