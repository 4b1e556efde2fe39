import { existsSync, symlinkSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { MissionRepository } from '../../src/git/index.ts';
import { missionScratch } from './mission-scratch.ts';
import { type FakeEntry, fakeTree, git, PLAN, personRepository } from './scratch.ts';

const { place, repositoryOf, importOver } = missionScratch();

describe('a collected tree becomes a commit', () => {
  it('with the changed, new and deleted paths, links as text and the execute bit', async () => {
    const before: FakeEntry[] = [
      ['a.txt', 'a\n'],
      ['gone.txt', 'x\n'],
      ['run.sh', '#!\n'],
    ];
    const after: FakeEntry[] = [
      ['a.txt', 'changed\n'],
      ['run.sh', '#!\n', 'executable'],
      ['d/new.txt', 'n\n'],
      ['link', '/etc/passwd', 'link'],
      ['empty', '', 'directory'],
    ];
    const { repository, base, done, names } = await importOver(
      { 'a.txt': 'a\n', 'gone.txt': 'x\n', 'run.sh': '#!\n', 'kept.txt': 'k\n' },
      before,
      after,
    );
    expect(names).toEqual(['100644 a.txt', '100644 d/new.txt', '100644 kept.txt', '120000 link', '100755 run.sh']);
    expect(git(repository.dir, ['cat-file', 'blob', `${done.commit}:link`])).toBe('/etc/passwd');
    expect(git(repository.dir, ['cat-file', 'blob', `${done.commit}:a.txt`])).toBe('changed');
    expect(git(repository.dir, ['rev-parse', `${done.commit}^`])).toBe(base);
    expect(git(repository.dir, ['log', '-1', '--format=%an <%ae> %at %ct', done.commit])).toBe(
      'Firecrew <firecrew@localhost> 1700000000 1700000000',
    );
    expect(git(repository.dir, ['log', '-1', '--format=%B', done.commit])).toBe(PLAN.message.trim());
  });

  it('with the same id for the same input, in another repository too', async () => {
    const tree = fakeTree([['a', '2']]);
    const ids: string[] = [];
    personRepository(place.path('source'), { a: '1' });
    for (const name of ['one.git', 'two.git']) {
      const repository = await MissionRepository.init(place.path(name));
      const { commit } = await repository.fetch({ remoteUrl: place.path('source'), allowLocalPath: true });
      const done = await repository.importSnapshot({
        baseCommit: commit,
        baseManifest: fakeTree([['a', '1']]).manifest,
        manifest: tree.manifest,
        content: tree.open,
        commit: PLAN,
      });
      ids.push(done.commit);
    }
    expect(ids[0]).toBe(ids[1]);
  });

  it('under any name that is not UTF-8, holds a newline, a quote or a tab', async () => {
    const odd = [
      Buffer.from('new\nline'),
      Buffer.from('"quoted"\t'),
      Buffer.from([0x62, 0x80]),
      Buffer.from([0x62, 0x81]),
      Buffer.from('--option'),
      Buffer.from(':(top)x'),
    ];
    const { names, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '1'], ...odd.map((name): FakeEntry => [name, 'x'])]);
    expect(done.notImported).toEqual([]);
    expect(names.map((line) => line.slice(7)).sort()).toEqual(['a', ...odd.map((name) => name.toString('latin1'))].sort());
  });

  it('and is the base itself when nothing differs', async () => {
    const { base, done } = await importOver(
      { a: '1' },
      [['a', '1']],
      [
        ['a', '1'],
        ['empty', '', 'directory'],
      ],
    );
    expect(done).toMatchObject({ commit: base, unchanged: true });
  });

  it('keeps what neither manifest holds: ignored, excluded and filtered paths', async () => {
    const files = {
      'a.txt': 'a\n',
      'secret/.env': 's\n',
      '.gitattributes': '*.txt text eol=crlf\n*.bin filter=lfs\n',
      'x.bin': 'pointer\n',
      'crlf.txt': 'c\n',
    };
    // The caller's tree holds CRLF where the commit holds LF, and the whole file where the commit holds a pointer.
    const before: FakeEntry[] = [
      ['a.txt', 'a\r\n'],
      ['.gitattributes', files['.gitattributes']],
      ['x.bin', 'WHOLE'],
      ['crlf.txt', 'c\r\n'],
    ];
    const { repository, base, done } = await importOver(files, before, [...before.slice(1), ['b.txt', 'b\n']]);
    expect(git(repository.dir, ['diff-tree', '-r', '--name-status', base, done.commit])).toBe('D\ta.txt\nA\tb.txt');
  });

  it('keeps submodules, and says which paths it left out because of them', async () => {
    const source = place.path('source');
    personRepository(source, { a: '1' });
    git(source, ['update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},mod`]);
    git(source, ['commit', '-q', '-m', 'submodule']);
    const { repository, base } = await repositoryOf(source);
    const tree = fakeTree([
      ['a', '2'],
      ['mod/x', 'x'],
      ['.git/hooks/x', 'x'],
      ['GIT~1', 'x'],
      ['.gitmodules', 'a', 'link'],
    ]);
    const done = await repository.importSnapshot({
      baseCommit: base,
      baseManifest: fakeTree([
        ['a', '1'],
        ['mod', '', 'directory'],
      ]).manifest,
      manifest: tree.manifest,
      content: tree.open,
      commit: PLAN,
    });
    expect(git(repository.dir, ['ls-tree', '-r', done.commit])).toMatch(/^100644 blob \w+\ta\n160000 commit 1{40}\tmod$/);
    expect(done.notImported.map((left) => [Buffer.from(left.path).toString(), left.reason])).toEqual([
      ['.git/hooks/x', 'git_name'],
      ['.gitmodules', 'symbolic_gitmodules'],
      ['GIT~1', 'git_name'],
      ['mod/x', 'inside_submodule'],
    ]);
    const gone = await repository.importSnapshot({
      baseCommit: base,
      baseManifest: fakeTree([
        ['a', '1'],
        ['mod', '', 'directory'],
      ]).manifest,
      manifest: [],
      content: tree.open,
      commit: PLAN,
    });
    expect(git(repository.dir, ['ls-tree', '-r', '--name-only', gone.commit])).toBe('mod');
    expect(await repository.describe(base)).toMatchObject({ shallow: false, lfs: false, submodules: [Buffer.from('mod')] });
  });

  it.each([
    ['a file by a folder', { x: '1', y: '1' }, [['x', '1']], [['x/in', '2']], ['100644 x/in', '100644 y']],
    ['a folder by a file', { 'x/a': '1', 'x/b': '1', y: '1' }, [['x/a', '1']], [['x', '2']], ['100644 x', '100644 y']],
    ['a link by a folder', { x: '1' }, [['x', '1', 'link']], [['x/in', '2']], ['100644 x/in']],
    ['a file by an empty folder', { x: '1', y: '1' }, [['x', '1']], [['x', '', 'directory']], ['100644 y']],
  ] as [string, Record<string, string>, FakeEntry[], FakeEntry[], string[]][])(
    'replaces %s',
    async (_name, files, before, after, wanted) => {
      const { names } = await importOver(files, before, after);
      expect(names).toEqual(wanted);
    },
  );

  it('refuses content that is not what the manifest says, and an unknown base', async () => {
    personRepository(place.path('source'), { a: '1' });
    const { repository, base } = await repositoryOf(place.path('source'));
    const common = { baseManifest: [], commit: PLAN, manifest: fakeTree([['a', '12']]).manifest };
    for (const content of ['1', '123', '21']) {
      const attempt = repository.importSnapshot({ ...common, baseCommit: base, content: fakeTree([['a', content]]).open });
      await expect(attempt).rejects.toMatchObject({ code: 'content_mismatch' });
    }
    const lost = repository.importSnapshot({ ...common, baseCommit: '1'.repeat(40), content: fakeTree([['a', '12']]).open });
    await expect(lost).rejects.toMatchObject({ code: 'base_missing' });
    expect(existsSync(`${repository.dir}/index`)).toBe(false);
  });

  it('takes in thousands of files', async () => {
    const many = Array.from({ length: 3000 }, (_, at): FakeEntry => [`d${at % 50}/f${at}`, `content ${at}\n`]);
    const { names } = await importOver({ a: '1' }, [['a', '1']], [['a', '1'], ...many]);
    expect(names).toHaveLength(3001);
  });
});

describe('a file name that git reads as something else', () => {
  it('is never followed: a link in the collected tree is text', async () => {
    symlinkSync('/etc/passwd', place.path('canary'));
    const { repository, done } = await importOver(
      { a: '1' },
      [['a', '1']],
      [
        ['a', '1'],
        ['report.json', place.path('canary'), 'link'],
      ],
    );
    expect(git(repository.dir, ['cat-file', 'blob', `${done.commit}:report.json`])).toBe(place.path('canary'));
  });
});
