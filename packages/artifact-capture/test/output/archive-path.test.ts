import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { archivePaths } from '../../src/index.ts';

const one = (name: string, id = 'art_1') => ({ id, name, phase: 0, attempt: 2 });

describe('paths of artifacts in an archive', () => {
  it.each([
    ['notes/a.md', 'phase-1/attempt-2/notes/a.md'],
    ['../../etc/passwd', 'phase-1/attempt-2/etc/passwd'],
    ['/abs//x', 'phase-1/attempt-2/abs/x'],
    ['a\\..\\b', 'phase-1/attempt-2/a/b'],
    ['.hidden/.env', 'phase-1/attempt-2/hidden/env'],
    ['x/con', 'phase-1/attempt-2/x/_con'],
    ['', 'phase-1/attempt-2/artifact'],
  ])('%j', (name, path) => {
    expect(archivePaths([one(name)])).toEqual([path]);
  });

  it('name the place only as far as there is one', () => {
    expect(archivePaths([{ id: 'art_1', name: 'a', phase: null, attempt: null }])).toEqual(['a']);
  });

  it('are never the same twice, not even on a disk that ignores case', () => {
    expect(archivePaths([one('a'), one('A', 'art_2'), { ...one('a'), attempt: 3 }])).toEqual([
      'phase-1/attempt-2/a',
      'phase-1/attempt-2/art_2-A',
      'phase-1/attempt-3/a',
    ]);
  });

  it('stay below the root and differ, for any names', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 60 }), { maxLength: 20 }), (names) => {
        const paths = archivePaths(names.map((name, index) => one(name, `art_${index}`)));
        expect(new Set(paths.map((path) => path.toLowerCase())).size).toBe(names.length);
        for (const path of paths) {
          expect(path.startsWith('phase-1/attempt-2/')).toBe(true);
          expect(path.split('/').filter((part) => part === '' || part.startsWith('.'))).toEqual([]);
        }
      }),
    );
  });
});
