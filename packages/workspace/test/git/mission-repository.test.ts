// size: the cases of one port against one kind of fixture, each short
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { MAX_PATCH_BYTES } from '@firecrew/artifact-capture';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { MissionRepository, runGit } from '../../src/git/index.ts';
import { serverAccess } from '../../src/git/remote-access.ts';
import { snapshotDirectory } from '../../src/tree/index.ts';
import { commitAll, type FakeEntry, fakeTree, git, PLAN, personRepository, put, type Scratch, scratch } from './scratch.ts';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
let place: Scratch;
beforeEach(() => {
  place = scratch();
});
afterEach(() => place.remove());

async function repositoryOf(source: string, branch = 'trunk'): Promise<{ repository: MissionRepository; base: string }> {
  const repository = await MissionRepository.init(place.path('mission.git'));
  const { commit } = await repository.fetch({ remoteUrl: `file://${source}`, allowLocalPath: true, branch });
  return { repository, base: commit };
}

async function importOver(files: Record<string, string>, before: readonly FakeEntry[], after: readonly FakeEntry[]) {
  personRepository(place.path('source'), files);
  const { repository, base } = await repositoryOf(place.path('source'));
  const tree = fakeTree(after);
  const done = await repository.importSnapshot({
    baseCommit: base,
    baseManifest: fakeTree(before).manifest,
    manifest: tree.manifest,
    content: tree.open,
    commit: PLAN,
  });
  const listing = git(repository.dir, ['ls-tree', '-r', '-z', done.commit])
    .split('\0')
    .filter((line) => line !== '');
  const names = listing.map((line) => line.replace(/^(\d+) \w+ \w+\t/, '$1 '));
  return { repository, base, done, names };
}

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

describe('the diff of two commits', () => {
  it('gives patch, paths and sizes', async () => {
    const { repository, base, done } = await importOver(
      { a: '1\n', b: '1\n2\n3\n4\n5\n' },
      [
        ['a', '1\n'],
        ['b', '1\n2\n3\n4\n5\n'],
      ],
      [
        ['c', '1\n2\n3\n4\n5\n6\n'],
        ['n\n', '\0\x01bin'],
        ['a', '2\n'],
      ],
    );
    const diff = await repository.diff(base, done.commit);
    expect(diff.errors).toEqual([]);
    expect(diff.files.map((entry) => [entry.status, text(entry.path), entry.from === undefined ? undefined : text(entry.from)])).toEqual([
      ['M', 'a', undefined],
      ['R', 'c', 'b'],
      ['A', 'n\n', undefined],
    ]);
    expect(diff.stat).toEqual({ files: 3, binaryFiles: 1, insertions: 2, deletions: 1 });
    expect(text(diff.patch ?? new Uint8Array())).toContain('GIT binary patch');
    expect(diff).toMatchObject({ isEmpty: false, isComplete: true, truncated: false });
    expect(text(diff.rawNameStatus ?? new Uint8Array())).toMatch(/^M\0a\0/);
  });

  it('is empty when nothing changed, cut at its limit, and an error when it cannot be computed', async () => {
    const { repository, base, done } = await importOver({ a: '1\n' }, [['a', '1\n']], [['a', 'x\n'.repeat(MAX_PATCH_BYTES / 2)]]);
    expect(await repository.diff(base, base)).toMatchObject({
      isEmpty: true,
      stat: { files: 0, binaryFiles: 0, insertions: 0, deletions: 0 },
    });
    const cut = await repository.diff(base, done.commit);
    expect(cut).toMatchObject({ truncated: true, isEmpty: false, isComplete: true, fileCount: 1 });
    expect(cut.patch).toHaveLength(MAX_PATCH_BYTES);
    const failed = await repository.diff(base, '1'.repeat(40));
    expect(failed).toMatchObject({ isEmpty: false, isComplete: false });
    expect(failed.errors.map((error) => error.what)).toEqual(['patch', 'name_status', 'numstat']);
  });
});

describe('the form a content has in a commit', () => {
  const attributes =
    '* text=auto\n*.bat text eol=crlf\n*.raw -text\n*.id ident\n*.bin filter=lfs -text\n*.u16 text working-tree-encoding=UTF-16LE\n';
  const show = (dir: string, commit: string, path: string): string => git(dir, ['cat-file', 'blob', `${commit}:${path}`]);
  const before: FakeEntry[] = [
    ['.gitattributes', attributes],
    ['a.bat', 'one\r\ntwo\r\n'],
    ['b.raw', 'x'],
    ['k.id', '$Id: 1 $\n'],
    ['l.bin', 'WHOLE'],
    ['same.bat', 'x\r\n'],
    ['crlf.txt', '1\r\n2\r\n'],
  ];
  const files = {
    '.gitattributes': attributes,
    'a.bat': 'one\ntwo\n',
    'b.raw': 'x',
    'k.id': '$Id$\n',
    'l.bin': 'pointer',
    'same.bat': 'x\n',
    'crlf.txt': '1\r\n2\r\n',
  };

  it("is that of the base's attributes: line ends, keywords, encodings", async () => {
    const after: FakeEntry[] = [
      ['.gitattributes', attributes],
      ['a.bat', 'one\r\nTWO\r\n'],
      ['b.raw', 'x\r\n'],
      ['k.id', '$Id: 1 $\nmore\n'],
      ['l.bin', 'OTHER'],
      ['new.txt', 'n\r\n'],
      ['new.u16', Buffer.from('é\n', 'utf16le')],
      ['same.bat', 'x\r\n', 'executable'],
      ['crlf.txt', '1\r\n3\r\n'],
    ];
    const { repository, base, done } = await importOver(files, before, after);
    expect(git(repository.dir, ['diff-tree', '-r', '--numstat', base, done.commit]).split('\n')).toEqual([
      '1\t1\ta.bat',
      '1\t1\tb.raw',
      '1\t1\tcrlf.txt',
      '1\t0\tk.id',
      '1\t1\tl.bin',
      '1\t0\tnew.txt',
      '1\t0\tnew.u16',
      '0\t0\tsame.bat',
    ]);
    expect(show(repository.dir, done.commit, 'b.raw')).toBe('x');
    expect(git(repository.dir, ['cat-file', '-s', `${done.commit}:b.raw`])).toBe('3');
    expect(git(repository.dir, ['cat-file', '-s', `${done.commit}:new.u16`])).toBe('3');
    expect(done.unfiltered.map((path) => [text(path.path), path.filter])).toEqual([['l.bin', 'lfs']]);
  });

  it('is named where the attributes of the base send it through a filter, unless it is a pointer already or the filter has no name', async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12345\n`;
    const rules = '*.bin filter=lfs\n*.c filter=indent\n*.plain -filter\n*.odd filter\n';
    const { done } = await importOver(
      { '.gitattributes': rules, 'old.bin': pointer },
      [
        ['.gitattributes', rules],
        ['old.bin', pointer],
      ],
      [
        ['.gitattributes', '*.txt filter=of-the-agent\n'],
        ['old.bin', pointer.replace('12345', '12346')],
        ['new.bin', 'WHOLE'],
        ['long.bin', pointer.padEnd(1024, ' ')],
        ['a.c', 'int a;\n'],
        ['a.plain', 'x'],
        ['a.odd', 'x'],
        ['a.txt', 'x'],
      ],
    );
    expect(done.unfiltered.map((path) => [text(path.path), path.filter]).sort()).toEqual([
      ['a.c', 'indent'],
      ['long.bin', 'lfs'],
      ['new.bin', 'lfs'],
    ]);
  });

  it('keeps a pointer when only the execute bit of its file changed', async () => {
    const after = before.map((entry): FakeEntry => (entry[0] === 'l.bin' ? ['l.bin', 'WHOLE', 'executable'] : entry));
    const { repository, done } = await importOver(files, before, after);
    expect(show(repository.dir, done.commit, 'l.bin')).toBe('pointer');
    expect(done.unfiltered).toEqual([]);
  });

  it('follows the line-ending setting of the checkout when there is one', async () => {
    const { repository, base } = await importOver({ a: 'one\ntwo\n' }, [], []);
    const tree = fakeTree([['a', 'one\r\nTWO\r\n']]);
    const input = { baseCommit: base, baseManifest: [], manifest: tree.manifest, content: tree.open, commit: PLAN };
    const stat = (commit: string): string => git(repository.dir, ['diff-tree', '-r', '--numstat', base, commit]);
    expect(stat((await repository.importSnapshot(input)).commit)).toBe('2\t2\ta');
    expect(stat((await repository.importSnapshot({ ...input, autocrlf: 'true' })).commit)).toBe('1\t1\ta');
  });

  it('stays with CR LF where the commit holds it already and git would only guess', async () => {
    const source = place.path('source');
    personRepository(source, { a: 'one\r\ntwo\r\n' });
    put(source, '.gitattributes', '* text=auto\n');
    commitAll(source, 'attributes');
    const { repository, base } = await repositoryOf(source);
    expect(git(repository.dir, ['cat-file', '-s', `${base}:a`])).toBe('10');
    const tree = fakeTree([['a', 'one\r\nTWO\r\n']]);
    const done = await repository.importSnapshot({
      baseCommit: base,
      baseManifest: [],
      manifest: tree.manifest,
      content: tree.open,
      commit: PLAN,
    });
    expect(git(repository.dir, ['diff-tree', '-r', '--numstat', base, done.commit])).toBe('1\t1\ta');
  });

  it('is found when a line end lies on the border of two pieces', async () => {
    const { repository, base } = await importOver({ '.gitattributes': '* text\n', a: '1\n' }, [], []);
    const tree = fakeTree([['a', '1\r\n2\r\n']]);
    const content = async function* (path: Uint8Array): AsyncGenerator<Uint8Array> {
      for await (const chunk of tree.open(path)) for (const byte of chunk) yield Uint8Array.of(byte);
    };
    const done = await repository.importSnapshot({ baseCommit: base, baseManifest: [], manifest: tree.manifest, content, commit: PLAN });
    expect(git(repository.dir, ['diff-tree', '-r', '--numstat', base, done.commit])).toBe('1\t0\ta');
  });
});

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

describe('the tree of a commit', () => {
  it('is written out as it was committed, and comes back from a snapshot blob', async () => {
    const source = place.path('source');
    const files = {
      '.gitattributes': '*.txt text eol=crlf\n*.id ident\n*.bin filter=evil\nhidden export-ignore\n',
      'a.txt': '1\n2\n',
      'x.id': '$Id$\n',
      'x.bin': 'b',
      hidden: 'h',
    };
    personRepository(source, files);
    put(source, 'run', '#!', 0o755);
    symlinkSync('/etc/passwd', `${source}/link`);
    put(source, Buffer.from([0x62, 0x80]), 'odd');
    const base = commitAll(source, 'all');
    const { repository } = await repositoryOf(source);
    await repository.exportTree(base, place.path('out'));
    for (const [name, content] of Object.entries(files)) expect(readFileSync(place.path('out', name), 'utf8')).toBe(content);
    await expect(repository.exportTree(base, place.path('out'))).rejects.toMatchObject({ code: 'EEXIST' });

    const before = await snapshotDirectory(place.path('out'), place.path('before.blob'));
    put(place.path('out'), 'a.txt', 'changed\n');
    put(place.path('out'), 'copy.txt', 'changed\n');
    const after = await snapshotDirectory(place.path('out'), place.path('after.blob'));
    const done = await repository.importSnapshot({
      baseCommit: base,
      baseManifest: before.entries,
      manifest: after.entries,
      content: { blobFile: place.path('after.blob') },
      commit: PLAN,
    });
    expect(git(repository.dir, ['diff-tree', '-r', '--name-status', base, done.commit])).toBe('M\ta.txt\nA\tcopy.txt');
    expect(git(repository.dir, ['cat-file', 'blob', `${done.commit}:copy.txt`])).toBe('changed');
    const wrong = repository.importSnapshot({
      baseCommit: base,
      baseManifest: before.entries,
      manifest: after.entries,
      content: { blobFile: place.path('before.blob') },
      commit: PLAN,
    });
    await expect(wrong).rejects.toMatchObject({ code: 'content_mismatch' });
  });
});

describe('the .git of a guest', () => {
  async function unpack(options: { maxBytes?: number; branch?: string; manifest?: ReturnType<typeof fakeTree>['manifest'] }) {
    const source = place.path('source');
    personRepository(source, { 'a.txt': '1\n', 'left.txt': 'out\n' });
    for (let at = 0; at < 60; at += 1) {
      put(source, 'a.txt', `${at}\n`);
      commitAll(source, `c${at}`);
    }
    git(source, ['update-index', '--add', '--cacheinfo', `160000,${'1'.repeat(40)},mod`]);
    git(source, ['commit', '-q', '-m', 'submodule']);
    const { repository, base } = await repositoryOf(source);
    const made = await repository.makeGuestGit(base, place.path('guest.tar'), { ...options, compression: 'none' });
    const guest = place.path('guest');
    mkdirSync(`${guest}/.git`, { recursive: true });
    const { execFileSync } = await import('node:child_process');
    execFileSync('tar', ['-xf', place.path('guest.tar'), '-C', `${guest}/.git`]);
    put(guest, 'a.txt', '59\n');
    return { made, guest, base, repository };
  }

  it('shows a clean tree on a branch with the whole history', async () => {
    const { made, guest, base } = await unpack({ branch: 'trunk', manifest: fakeTree([['a.txt', '59\n']]).manifest });
    expect(made).toMatchObject({ history: 'full', branch: 'trunk', absentPaths: 1 });
    expect(git(guest, ['status', '--porcelain'])).toBe('');
    expect(git(guest, ['symbolic-ref', 'HEAD'])).toBe('refs/heads/trunk');
    expect(git(guest, ['rev-parse', 'HEAD'])).toBe(base);
    expect(git(guest, ['rev-list', '--count', 'HEAD'])).toBe('62');
    expect(git(guest, ['remote'])).toBe('');
    expect(git(guest, ['fsck', '--strict'])).toBe('');
    expect(existsSync(`${guest}/.git/hooks`)).toBe(false);
    expect(readFileSync(`${guest}/.git/config`, 'utf8')).toBe('[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n');
    put(guest, 'a.txt', 'work\n');
    expect(git(guest, ['status', '--porcelain'])).toBe('M a.txt');
    commitAll(guest, 'the guest can commit');
  });

  it('holds the last fifty commits when the history is too large', async () => {
    const { made, guest } = await unpack({ maxBytes: 0, branch: '../evil' });
    expect(made).toMatchObject({ history: 'depth', branch: 'main' });
    expect(git(guest, ['rev-list', '--count', 'HEAD'])).toBe('50');
    expect(git(guest, ['fsck'])).toBe('');
  });

  it('is written compressed by default', async () => {
    personRepository(place.path('source'), { a: '1' });
    const { repository, base } = await repositoryOf(place.path('source'));
    const { bytes } = await repository.makeGuestGit(base, place.path('guest.tar.zst'));
    const written = readFileSync(place.path('guest.tar.zst'));
    expect(written).toHaveLength(bytes);
    expect(written.readUInt32LE(0)).toBe(0xfd2fb528);
  });
});

describe('packs', () => {
  it('carry a result to a repository that holds the base', async () => {
    const { repository, base, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    await repository.packFor(done.commit, { not: [base] }, place.path('out.pack'));
    git(place.path('source'), ['index-pack', '--stdin', '--strict'], readFileSync(place.path('out.pack')));
    expect(git(place.path('source'), ['cat-file', 'blob', `${done.commit}:a`])).toBe('2');
  });

  it('rebuild the repository elsewhere, and are refused when something is missing or broken', async () => {
    const { repository, base, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    await repository.packFor(done.commit, {}, place.path('all.pack'));
    await repository.packFor(done.commit, { not: [base] }, place.path('thin.pack'));
    const other = await MissionRepository.init(place.path('other.git'));
    await other.importPack(place.path('all.pack'), { head: done.commit });
    expect(await other.isAncestor(base, done.commit)).toBe(true);
    expect(await other.isAncestor(done.commit, base)).toBe(false);
    expect(await other.isAncestor('1'.repeat(40), base)).toBeUndefined();
    const third = await MissionRepository.init(place.path('third.git'));
    await expect(third.importPack(place.path('thin.pack'), { head: done.commit })).rejects.toMatchObject({ code: 'pack_incomplete' });
    writeFileSync(place.path('bad.pack'), 'PACK nonsense');
    await expect(third.importPack(place.path('bad.pack'))).rejects.toMatchObject({ code: 'pack_unreadable' });
    await expect(third.importPack(place.path('all.pack'), { shallow: Buffer.from('-x\n') })).rejects.toMatchObject({
      code: 'shallow_malformed',
    });
    await expect(third.packFor('HEAD', {}, place.path('x.pack'))).rejects.toMatchObject({ code: 'commit_id_malformed' });
  });
});

describe('the remote of a mission', () => {
  it('is fetched at its default branch, with what matters about it', async () => {
    const source = place.path('source');
    personRepository(source, { 'a/.gitattributes': '*.bin filter=lfs diff=lfs\n' });
    const { repository } = await repositoryOf(source);
    const fetched = await repository.fetch({ remoteUrl: source, allowLocalPath: true });
    expect(fetched).toMatchObject({ branch: 'trunk', lfs: true, shallow: false, submodules: [] });
  });

  it('is refused or reported by name', async () => {
    const source = place.path('source');
    personRepository(source, { a: '1' });
    commitAll(source, 'two');
    git(place.dir, ['clone', '-q', '--depth=1', `file://${source}`, 'shallow']);
    git(place.dir, ['init', '-q', '--bare', 'empty.git']);
    const repository = await MissionRepository.init(place.path('mission.git'));
    const fetch = (remoteUrl: string, branch?: string) =>
      repository.fetch({ remoteUrl, allowLocalPath: true, ...(branch === undefined ? {} : { branch }) });
    await expect(repository.fetch({ remoteUrl: source })).rejects.toMatchObject({ code: 'remote_refused' });
    await expect(fetch('ext::sh -c id')).rejects.toMatchObject({ code: 'remote_refused' });
    await expect(fetch(place.path('absent'))).rejects.toMatchObject({ code: 'remote_unreadable' });
    await expect(fetch(place.path('empty.git'))).rejects.toMatchObject({ code: 'remote_empty' });
    await expect(fetch(source, 'absent')).rejects.toMatchObject({ code: 'remote_branch_missing' });
    await expect(fetch(source, '--upload-pack=x')).rejects.toMatchObject({ code: 'remote_branch_missing' });
    await expect(fetch(place.path('shallow'))).rejects.toMatchObject({ code: 'remote_shallow' });
  });

  it('gets one branch, however often the push is repeated', async () => {
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    const { repository, base, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    const push = { remoteUrl: place.path('remote.git'), allowLocalPath: true, branch: 'firecrew/x-12345678' };
    expect(await repository.push({ ...push, commit: base })).toMatchObject({
      verdict: 'pushed',
      branch: push.branch,
      reason: 'new_branch',
    });
    expect(await repository.push({ ...push, commit: done.commit })).toMatchObject({
      verdict: 'pushed',
      reason: 'fast_forward',
      redirected: false,
    });
    expect(await repository.push({ ...push, commit: done.commit })).toMatchObject({ verdict: 'up_to_date', reason: 'already_there' });
    expect(git(place.path('remote.git'), ['for-each-ref', '--format=%(refname) %(objectname)'])).toBe(
      `refs/heads/${push.branch} ${done.commit}`,
    );
  });

  it('gets a suffixed branch when histories diverged, and the first one stays', async () => {
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    const { repository, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    const other = personRepository(place.path('unrelated'), { z: 'z' });
    git(place.path('unrelated'), ['push', '-q', place.path('remote.git'), 'trunk:refs/heads/firecrew/x']);
    const push = { remoteUrl: place.path('remote.git'), allowLocalPath: true, branch: 'firecrew/x', commit: done.commit };
    const suffixed = `firecrew/x-${done.commit.slice(0, 8)}`;
    expect(await repository.push(push)).toMatchObject({ verdict: 'pushed', branch: suffixed, redirected: true });
    expect(await repository.push(push)).toMatchObject({ verdict: 'up_to_date', branch: suffixed, redirected: true });
    expect(git(place.path('remote.git'), ['rev-parse', 'firecrew/x', suffixed])).toBe(`${other}\n${done.commit}`);
  });

  it('is quoted when its hook declines, and nothing is tried elsewhere', async () => {
    const remote = place.path('remote.git');
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    put(`${remote}/hooks`, 'pre-receive', '#!/bin/sh\necho "policy: no [rejected] (fetch first) here" >&2\nexit 1\n', 0o755);
    const { repository, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    const outcome = await repository.push({ remoteUrl: remote, allowLocalPath: true, branch: 'firecrew/x', commit: done.commit });
    expect(outcome).toMatchObject({
      verdict: 'refused',
      reason: 'remote_rejected',
      branch: 'firecrew/x',
      redirected: false,
      detail: '[remote rejected] (pre-receive hook declined)',
    });
    expect(outcome.remoteText).toContain('policy: no [rejected] (fetch first) here');
    expect(git(remote, ['for-each-ref'])).toBe('');
  });

  it('is refused by name when a branch stands where a folder is needed, and unreadable when it is gone', async () => {
    git(place.dir, ['init', '-q', '--bare', 'remote.git']);
    const { repository, done } = await importOver({ a: '1' }, [['a', '1']], [['a', '2']]);
    git(place.path('source'), ['push', '-q', place.path('remote.git'), 'trunk:refs/heads/firecrew']);
    const push = { allowLocalPath: true, branch: 'firecrew/x', commit: done.commit };
    expect(await repository.push({ ...push, remoteUrl: place.path('remote.git') })).toMatchObject({
      verdict: 'refused',
      reason: 'remote_rejected',
    });
    expect(await repository.push({ ...push, remoteUrl: place.path('absent.git') })).toMatchObject({
      verdict: 'unreadable',
      reason: 'remote_unreadable',
    });
  });
});

describe('a login for a remote', () => {
  const ask = async (remoteUrl: string, host: string) => {
    const { access } = serverAccess({ remoteUrl, credential: { username: 'x-token', password: 'p%40 "$(id)' } });
    const input = Buffer.from(`protocol=https\nhost=${host}\n\n`);
    const { stdout } = await runGit(['credential', 'fill'], {
      ...access,
      input,
      cwd: place.dir,
      timeoutMs: 30_000,
      maxOutputBytes: 4096,
      exitCodes: [0, 128],
    });
    return { answer: text(stdout), access };
  };

  it('reaches git for its own host alone, and stands in no argument', async () => {
    const { answer, access } = await ask('https://forge.example/a', 'forge.example');
    expect(answer).toContain('username=x-token\npassword=p%40 "$(id)\n');
    expect(JSON.stringify(access.config)).not.toContain('p%40');
    expect((await ask('https://forge.example/a', 'evil.example')).answer).not.toContain('p%40');
    expect((await ask('https://forge.example:8443/a', 'forge.example')).answer).not.toContain('p%40');
  });

  it('is refused when it would add lines of its own', () => {
    const login = () => serverAccess({ remoteUrl: 'https://forge.example/a', credential: { username: 'a', password: 'b\nhost=evil' } });
    expect(login).toThrow(expect.objectContaining({ code: 'remote_credential_malformed' }));
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
