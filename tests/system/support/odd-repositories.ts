import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { git, makeRepository } from './repository.ts';

export const FILES = { 'add.js': 'module.exports = (a, b) => a - b;\n', 'lib/a.txt': 'a\n' };

/** Commits everything of a working tree, ignored files too. */
export async function commitAll(folder: string, message = 'more'): Promise<void> {
  await git(folder, 'add', '-A', '-f');
  await git(folder, 'commit', '-q', '-m', message);
}

async function shallowClone(to: string): Promise<undefined> {
  const origin = await makeRepository(`${to}.origin`, FILES);
  await writeFile(join(origin, 'more.txt'), 'x');
  await commitAll(origin);
  execFileSync('git', ['clone', '-q', '--depth=1', `file://${origin}`, to]);
}

/** A repository that is unlike most, and what of it the agent gets and the branch holds. */
export interface Oddity {
  readonly what: string;
  /** Makes it, and gives the folder to run in where that is another one. */
  readonly make: (folder: string) => Promise<string | undefined>;
  readonly agent?: string;
  readonly args?: readonly string[];
  /** What the run says before it begins. */
  readonly notes?: readonly string[];
  /** Files that the agent sees, where that is looked at. */
  readonly sees?: readonly string[];
  readonly tree: readonly string[];
  /** Names or output hold what acts on a terminal. */
  readonly hasEscapes?: boolean;
  readonly also?: (folder: string, commit: string) => Promise<void>;
}

export const ODDITIES: readonly Oddity[] = [
  {
    what: 'with a detached HEAD',
    make: async (to) => {
      await makeRepository(to, FILES);
      await git(to, 'checkout', '-q', '--detach');
      return undefined;
    },
    tree: ['add.js', 'done.txt', 'lib/a.txt'],
    also: async (folder) => await expect(git(folder, 'symbolic-ref', '-q', 'HEAD')).rejects.toThrow(),
  },
  {
    what: 'that is a linked working tree',
    make: async (to) => {
      await makeRepository(to, FILES);
      await git(to, 'worktree', 'add', '-q', '-b', 'side', `${to}.side`);
      // Another index than that of the repository's own tree.
      await writeFile(join(`${to}.side`, 'side.txt'), 's');
      await commitAll(`${to}.side`);
      return `${to}.side`;
    },
    tree: ['add.js', 'done.txt', 'lib/a.txt', 'side.txt'],
    also: async (folder) => expect((await git(folder, 'branch', '--show-current')).trim()).toBe('side'),
  },
  {
    what: 'with a submodule',
    make: async (to) => {
      await makeRepository(to, FILES);
      await makeRepository(`${to}.module`, FILES);
      await git(to, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', `${to}.module`, 'module');
      await git(to, 'commit', '-q', '-m', 'module');
      return undefined;
    },
    notes: ['submodules stay empty: module'],
    sees: ['./.gitmodules', './add.js', './lib/a.txt'],
    tree: ['.gitmodules', 'add.js', 'done.txt', 'lib/a.txt', 'module'],
    also: async (folder, commit) =>
      expect(await git(folder, 'rev-parse', `${commit}:module`)).toBe(await git(folder, 'rev-parse', 'HEAD:module')),
  },
  {
    what: 'with large files of a filter that is not run',
    make: async (to) => {
      await makeRepository(to, {
        ...FILES,
        '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
        'big.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 10\n`,
      });
      for (const way of ['clean', 'smudge']) await git(to, 'config', `filter.lfs.${way}`, `touch '${to}.ran'; tr a-z A-Z`);
      return undefined;
    },
    notes: ['large files travel as they are checked out here'],
    tree: ['.gitattributes', 'add.js', 'big.bin', 'done.txt', 'lib/a.txt'],
    also: async (folder, commit) => {
      expect(existsSync(`${folder}.ran`)).toBe(false);
      expect(await git(folder, 'show', `${commit}:big.bin`)).toContain('git-lfs.github.com');
    },
  },
  {
    what: 'that is a shallow clone',
    make: shallowClone,
    agent: 'git fsck --no-dangling && test "$(git rev-list --count HEAD)" = 1',
    notes: ['the clone is shallow: the agent sees its short history (send all of it with --unshallow)'],
    tree: ['add.js', 'done.txt', 'lib/a.txt', 'more.txt'],
    also: async (folder) => expect(await git(folder, 'fsck', '--no-dangling')).toBe(''),
  },
  {
    what: 'that is a shallow clone, and is to travel whole,',
    make: shallowClone,
    args: ['--unshallow'],
    agent: 'git fsck --no-dangling && test "$(git rev-list --count HEAD)" = 2',
    tree: ['add.js', 'done.txt', 'lib/a.txt', 'more.txt'],
    also: async (folder) => expect((await git(folder, 'rev-parse', '--is-shallow-repository')).trim()).toBe('true'),
  },
  {
    what: 'with a sparse checkout',
    make: async (to) => {
      await makeRepository(to, { ...FILES, 'out/o.txt': 'o\n' });
      await git(to, 'sparse-checkout', 'set', 'lib');
      return undefined;
    },
    notes: ['1 file outside the sparse checkout stays here'],
    sees: ['./add.js', './lib/a.txt'],
    tree: ['add.js', 'done.txt', 'lib/a.txt', 'out/o.txt'],
  },
  {
    what: 'with ignored and secret-shaped files',
    make: async (to) => {
      await makeRepository(to, { ...FILES, '.gitignore': 'build/\n*.log\n' });
      await mkdir(join(to, 'build'));
      for (const name of ['build/out', 'x.log', '.env', 'key\n.pem']) await writeFile(join(to, name), name);
      return undefined;
    },
    notes: [
      'looks like a secret and stays here: .env, key .pem (send with --include-secret PATH)',
      '2 ignored paths stay here (send with --include PATH)',
    ],
    sees: ['./.gitignore', './add.js', './lib/a.txt'],
    tree: ['.gitignore', 'add.js', 'done.txt', 'lib/a.txt'],
  },
  {
    what: 'with some of these included by name',
    make: async (to) => {
      await makeRepository(to, { ...FILES, '.gitignore': 'build/\n*.log\n.env\n' });
      await mkdir(join(to, 'build'));
      for (const name of ['build/out', 'x.log', '.env', 'id_rsa']) await writeFile(join(to, name), name);
      return undefined;
    },
    args: ['--include', 'build', '--include', 'id_rsa', '--include-secret', '.env'],
    notes: ['looks like a secret and stays here: id_rsa (send with --include-secret PATH)', 'looks like a secret and travels: .env'],
    sees: ['./.env', './.gitignore', './add.js', './build/out', './lib/a.txt'],
    tree: ['.gitignore', 'add.js', 'done.txt', 'lib/a.txt'],
  },
  {
    what: 'with names of every kind, some alike but for their case',
    hasEscapes: true,
    make: async (to) => {
      await makeRepository(to, { ...FILES, README: '1', readme: '2', 'a\nb': 'x', 'esc\u001b[31m': 'z', 'q"\\t': 'q' });
      await writeFile(Buffer.concat([Buffer.from(`${to}/latin`), Buffer.from([0xe9])]), 'y');
      await commitAll(to);
      return undefined;
    },
    agent: `rm README; echo 3 > Readme; mv "$(printf 'a\\nb')" "$(printf 'c\\nd')"; echo Y > "$(printf 'latin\\351')"; printf '\\033]0;owned\\007\\033[2J\\n'`,
    tree: ['Readme', 'add.js', 'c\nd', 'done.txt', 'esc\u001b[31m', 'latin\ufffd', 'lib/a.txt', 'q"\\t', 'readme'],
    also: async (folder, commit) =>
      expect(await git(folder, 'diff-tree', '-r', '--name-status', 'HEAD', commit)).toContain('M\t"latin\\351"\n'),
  },
];
