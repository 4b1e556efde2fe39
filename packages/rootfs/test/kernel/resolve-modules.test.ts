import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { type ModuleIndex, moduleOfPath, parseModulesBuiltin, parseModulesDep, resolveModules } from '../../src/kernel/resolve-modules.ts';

function index(depends: Readonly<Record<string, readonly string[]>>, builtIn: readonly string[] = []): ModuleIndex {
  const paths = new Map(Object.keys(depends).map((name) => [name, `kernel/${name}.ko`]));
  return { paths, builtIn: new Set(builtIn), depends: (name) => depends[name] ?? [] };
}

describe('the modules of a kernel', () => {
  /** [path, name] */
  const PATHS: readonly (readonly [string, string | undefined])[] = [
    ['kernel/drivers/char/hw_random/virtio-rng.ko', 'virtio_rng'],
    ['kernel/a/b.ko.xz', 'b'],
    ['b.ko.zst', 'b'],
    ['b.ko.gz', 'b'],
    ['modules.dep', undefined],
    ['b.ko.bz2', undefined],
    ['b.ko/x', undefined],
  ];
  it.each(PATHS)('%s is %s', (path, name) => {
    expect(moduleOfPath(path)).toBe(name);
  });

  it('are loaded behind what they need, each once', () => {
    const plan = resolveModules(['c', 'b'], index({ a: [], b: ['a'], c: ['b', 'a'] }));
    expect(plan).toEqual({ load: ['a', 'b', 'c'], builtIn: [], missing: [] });
  });

  it('that are built in need nothing, and those of no kernel are named', () => {
    const plan = resolveModules(['x', 'c', 'virtio-rng'], index({ c: ['a'], virtio_rng: [] }, ['a']));
    expect(plan).toEqual({ load: ['c', 'virtio_rng'], builtIn: [], missing: ['x'] });
    expect(resolveModules(['a'], index({}, ['a'])).builtIn).toEqual(['a']);
  });

  it('that need one another, or what is nowhere, are refused', () => {
    const code = (wanted: readonly string[], depends: Record<string, readonly string[]>): string | undefined => {
      try {
        resolveModules(wanted, index(depends));
        return undefined;
      } catch (error) {
        return codeOf(error);
      }
    };
    expect(code(['a'], { a: ['b'], b: ['a'] })).toBe('modules_malformed');
    expect(code(['a'], { a: ['gone'] })).toBe('modules_malformed');
    expect(code(['b'], { a: ['b'], b: [] })).toBeUndefined();
  });

  it('are read from what depmod and the kernel write', () => {
    expect([...parseModulesDep('kernel/a.ko:\nkernel/b-c.ko.xz: kernel/a.ko kernel/d.ko\n')]).toEqual([
      ['a', []],
      ['b_c', ['a', 'd']],
    ]);
    expect([...parseModulesBuiltin('kernel/fs/ext4/ext4.ko\nkernel/x-y.ko\n\nnone\n')]).toEqual(['ext4', 'x_y']);
    for (const text of ['no colon\n', ': a.ko\n', 'a.ko: readme\n']) expect(() => parseModulesDep(text), text).toThrow('modules.dep');
  });
});
