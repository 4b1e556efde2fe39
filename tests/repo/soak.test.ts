import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findMutants } from '../soak/find-mutants.ts';
import { choose } from '../soak/mutate-package.ts';
import { SOAKS } from '../soak/soaks.ts';

const ROOT = new URL('../../', import.meta.url);

describe('a soak', () => {
  it.each([...SOAKS])('%s repeats files that are there and hold properties', (_name, files) => {
    for (const file of files) {
      const path = fileURLToPath(new URL(file, ROOT));
      expect(existsSync(path), file).toBe(true);
      expect(readFileSync(path, 'utf8'), file).toMatch(/fast-check|arbitraries|build-tree/);
    }
  });
});

describe('the mutants of a source', () => {
  const mutate = (source: string) =>
    findMutants('a.ts', source).map(({ start, end, text }) => source.slice(0, start) + text + source.slice(end));

  it.each([
    ['const a = b < 3;', ['const a = b <= 3;', 'const a = b < 4;']],
    ['const a = b && !c;', ['const a = b || !c;', 'const a = b && c;']],
    ['if (a) b();', ['if (true) b();', 'if (false) b();']],
    ['const a = true;', ['const a = false;']],
    ['const a = b - c;', ['const a = b + c;']],
  ])('of `%s` change one thing each', (source, wanted) => {
    expect(mutate(source).toSorted()).toEqual(wanted.toSorted());
  });

  it.each(['type A = 1 | true;', 'const a = `x` + b;', "const a = 'x' + b;", 'interface A { readonly b: 3 }', '// if (a) b < 3'])(
    'are none in `%s`',
    (source) => {
      expect(mutate(source)).toEqual([]);
    },
  );

  it('are chosen alike for the same seed, and from every part', () => {
    const all = Array.from({ length: 100 }, (_, index) => index);
    expect(choose(all, 10, 7)).toEqual(choose(all, 10, 7));
    expect(choose(all, 10, 7)).not.toEqual(choose(all, 10, 8));
    expect(choose(all, 10, 7).map((item) => Math.floor(item / 10))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(choose(all, 0, 7)).toEqual(all);
  });
});
