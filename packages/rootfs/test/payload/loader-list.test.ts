import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { parseLoaderList } from '../../src/payload/loader-list.ts';

describe('what a loader says a program needs', () => {
  it('is names and places, without the loader and the object of the kernel', () => {
    const text = [
      '\tlinux-vdso.so.1 (0x00007ffd1b5f2000)',
      '\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f1)',
      '\tlibstdc++.so.6 => /usr/lib/libstdc++.so.6 (0x00007f2)',
      '\t/lib64/ld-linux-x86-64.so.2 (0x00007f3)',
      '',
    ].join('\n');
    expect(parseLoaderList(text)).toEqual([
      { name: 'libdl.so.2', path: '/lib/x86_64-linux-gnu/libdl.so.2' },
      { name: 'libstdc++.so.6', path: '/usr/lib/libstdc++.so.6' },
    ]);
  });

  /** [the line, the code] */
  const REFUSED: readonly (readonly [string, string])[] = [
    ['\tlibfoo.so.1 => not found', 'library_missing'],
    ['\tlib/foo.so => /lib/foo.so (0x1)', 'loader_answer_unknown'],
    ['\tlibfoo.so => relative.so (0x1)', 'loader_answer_unknown'],
    ['statically linked', 'loader_answer_unknown'],
  ];
  it.each(REFUSED)('%j is refused', (line, code) => {
    try {
      parseLoaderList(line);
      expect.unreachable();
    } catch (error) {
      expect(codeOf(error)).toBe(code);
    }
  });
});
