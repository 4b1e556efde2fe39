import { describe, expect, it } from 'vitest';
import { missionScratch, text } from './mission-scratch.ts';
import { commitAll, type FakeEntry, fakeTree, git, PLAN, personRepository, put } from './scratch.ts';

const { place, repositoryOf, importOver } = missionScratch();

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
