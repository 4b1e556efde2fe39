import { MAX_PATCH_BYTES } from '@firecrew/artifact-capture';
import { describe, expect, it } from 'vitest';
import { missionScratch, text } from './mission-scratch.ts';

const { importOver } = missionScratch();

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
