import { describe, expect, it } from 'vitest';
import { missionScratch, text } from './mission-scratch.ts';
import { type FakeEntry, fakeTree, PLAN } from './scratch.ts';

const { importOver } = missionScratch();

describe('paths that the base ignores', () => {
  const rules = { '.gitignore': '*.log\n/out/\n!keep.log\n', 'd/.gitignore': 'local\n', 'tracked.log': '1' };
  const before: FakeEntry[] = [['tracked.log', '1']];
  const after: FakeEntry[] = [
    ['tracked.log', '2'],
    ['x.log', 'l'],
    ['keep.log', 'k'],
    ['out/x', 'o'],
    ['d/local', 'l'],
    ['local', 'l'],
    ['sub/out/x', 'o'],
    [':(top)y.log', 'l'],
    ['-v.log', 'l'],
    ['.git/x.log', 'x'],
    [Buffer.from([0x80, 0x2e, 0x6c, 0x6f, 0x67]), 'l'],
  ];

  it('are left out of the commit by name, unless they are tracked', async () => {
    const { names, done } = await importOver(rules, before, after);
    expect(names.map((name) => name.slice(7))).toEqual(['.gitignore', 'd/.gitignore', 'keep.log', 'local', 'sub/out/x', 'tracked.log']);
    expect(done.notImported.map((left) => [text(left.path), left.reason])).toEqual([
      ['-v.log', 'ignored'],
      ['.git/x.log', 'git_name'],
      [':(top)y.log', 'ignored'],
      ['d/local', 'ignored'],
      ['out/x', 'ignored'],
      ['x.log', 'ignored'],
      ['\x80.log', 'ignored'],
    ]);
  });

  it('are judged by the rules of the base, not by those of the collected tree', async () => {
    const { names } = await importOver(
      { a: '1' },
      [['a', '1']],
      [
        ['a', '1'],
        ['.gitignore', '*'],
        ['x', 'x'],
      ],
    );
    expect(names.map((name) => name.slice(7))).toEqual(['.gitignore', 'a', 'x']);
  });

  it('can be asked for, and imported when wanted', async () => {
    const { repository, base } = await importOver(rules, before, before);
    expect(
      [
        ...(await repository.ignoredPaths(
          base,
          after.map(([path]) => Buffer.from(path)),
        )),
      ].sort(),
    ).toEqual(['-v.log', ':(top)y.log', 'd/local', 'out/x', 'tracked.log', 'x.log', '\x80.log']);
    const tree = fakeTree(after);
    const all = await repository.importSnapshot({
      baseCommit: base,
      baseManifest: [],
      manifest: tree.manifest,
      content: tree.open,
      commit: PLAN,
      ignoredPaths: 'import',
    });
    expect(all.notImported.map((left) => left.reason)).toEqual(['git_name']);
  });
});
