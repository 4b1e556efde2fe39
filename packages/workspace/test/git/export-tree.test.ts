import { readFileSync, symlinkSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { snapshotDirectory } from '../../src/tree/index.ts';
import { missionScratch } from './mission-scratch.ts';
import { commitAll, git, PLAN, personRepository, put } from './scratch.ts';

const { place, repositoryOf } = missionScratch();

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
