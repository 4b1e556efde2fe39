import { describe, expect, it } from 'vitest';
import { isGitmodulesName, isGitName } from '../../src/index.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('isGitName', () => {
  it.each([
    '.git',
    '.GIT',
    '.Git',
    'git~1',
    'GIT~1',
    '.git ',
    '.git.',
    '.git . .',
    '.git::$INDEX_ALLOCATION',
    '.git:stream',
    '.g\u200cit',
    '\ufeff.git',
    '.gi\u206ft',
    '.git\u200d',
    'a\\.git',
    '.git\\config',
  ])('knows %j', (name) => {
    expect(isGitName(bytes(name))).toBe(true);
  });

  it.each([
    'git',
    '.gitignore',
    '.gitattributes',
    '.github',
    'x.git',
    'vendor.git',
    'git~2',
    '.git~1',
    '.gita',
    '.git-old',
    '..git',
    '.g\u2010it',
  ])('leaves %j alone', (name) => {
    expect(isGitName(bytes(name))).toBe(false);
  });
});

describe('isGitmodulesName', () => {
  it.each(['.gitmodules', '.GitModules', 'GITMOD~1', 'gi7eba~4', '.gitmodules .', '.gitmodules:x', '.git\u200cmodules'])(
    'knows %j',
    (name) => {
      expect(isGitmodulesName(bytes(name))).toBe(true);
    },
  );

  it.each(['gitmodules', '.gitmodule', 'gitmod~5', '.gitmodules2'])('leaves %j alone', (name) => {
    expect(isGitmodulesName(bytes(name))).toBe(false);
  });
});
