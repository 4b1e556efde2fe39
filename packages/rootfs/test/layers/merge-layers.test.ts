import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { countInodes, flattenTree } from '../../src/layers/flatten-tree.ts';
import { type MergeLimits, mergeLayers } from '../../src/layers/merge-layers.ts';
import { DEFAULT_IMAGE_LIMITS } from '../../src/limits.ts';
import { type ScannedEntry, scanTar } from '../../src/tar/scan-tar.ts';
import { makeTar, type RawEntry, sourceOf } from '../support/make-tar.ts';

const file = (name: string, more: Partial<RawEntry> = {}): RawEntry => ({ name, content: name, ...more });
const folder = (name: string, more: Partial<RawEntry> = {}): RawEntry => ({ name, type: '5', mode: 0o755, ...more });
const link = (name: string, target: string): RawEntry => ({ name, type: '2', link: target });
const hard = (name: string, target: string): RawEntry => ({ name, type: '1', link: target });
const hide = (name: string): RawEntry => ({ name });

async function entriesOf(layer: readonly RawEntry[]): Promise<ScannedEntry[]> {
  const entries: ScannedEntry[] = [];
  for await (const entry of scanTar(sourceOf(makeTar(layer)), DEFAULT_IMAGE_LIMITS)) entries.push(entry);
  return entries;
}

async function merge(layers: readonly (readonly RawEntry[])[], limits: Partial<MergeLimits> = {}, whiteouts = true) {
  const read = await Promise.all(layers.map(async (layer) => ({ entries: await entriesOf(layer), whiteouts })));
  return [...flattenTree(mergeLayers(read, { ...DEFAULT_IMAGE_LIMITS, ...limits }), { kind: 'kept' })];
}

/** The image as short lines: path, what it is, which layer its content is from. */
async function show(...layers: readonly (readonly RawEntry[])[]): Promise<string[]> {
  return (await merge(layers)).map(({ entry, content }) => {
    const what = { file: `layer ${content?.layer}`, 'hard-link': `= ${entry.linkName}`, 'symbolic-link': `-> ${entry.linkName}` };
    return `${entry.path} ${Object.hasOwn(what, entry.type) ? what[entry.type as keyof typeof what] : entry.type}`;
  });
}

describe('layers over each other', () => {
  /** [what happens, the layers, the lines below the root] */
  const MERGES: readonly (readonly [string, readonly (readonly RawEntry[])[], readonly string[]])[] = [
    ['a file replaces a file', [[file('a')], [file('a')]], ['a layer 1']],
    ['the last of one name in a layer wins', [[file('a'), link('a', 'x')]], ['a -> x']],
    ['a folder replaces a file', [[file('a')], [folder('a/')]], ['a/ directory']],
    ['a file replaces a folder with all in it', [[folder('a/'), file('a/b')], [file('a')]], ['a layer 1']],
    ['a folder over a folder keeps what is in it', [[file('a/b')], [folder('a/')]], ['a/ directory', 'a/b layer 0']],
    [
      'a folder replaces a link',
      [
        [folder('d/'), link('a', 'd')],
        [folder('a/'), file('a/f')],
      ],
      ['a/ directory', 'a/f layer 1', 'd/ directory'],
    ],
    ['a whiteout hides a file', [[file('a'), file('b')], [hide('.wh.a')]], ['b layer 0']],
    ['a whiteout hides a folder', [[file('d/x/y')], [hide('d/.wh.x')]], ['d/ directory']],
    ['a whiteout of what is not there hides nothing', [[file('a')], [hide('.wh.b'), hide('no/.wh.c')]], ['a layer 0']],
    ['a whiteout does not hide what its own layer brings', [[file('a')], [file('a'), hide('.wh.a')]], ['a layer 1']],
    [
      'a whiteout behind new content of its folder hides the old alone',
      [[file('d/old')], [file('d/new'), hide('.wh.d')]],
      ['d/ directory', 'd/new layer 1'],
    ],
    [
      'an opaque folder hides everything lower',
      [
        [file('d/a'), file('d/b/c')],
        [file('d/n'), hide('d/.wh..wh..opq')],
      ],
      ['d/ directory', 'd/n layer 1'],
    ],
    ['an opaque root hides everything lower', [[file('a')], [hide('.wh..wh..opq'), file('b')]], ['b layer 1']],
    ['a whiteout lasts for one layer', [[file('a')], [hide('.wh.a')], [file('a')]], ['a layer 2']],
    ['a hard link shares a file of its layer', [[file('b'), hard('a', 'b')]], ['a layer 0', 'b = a']],
    ['a hard link shares a file of a lower layer', [[file('d/b')], [hard('d/c', 'd/b')]], ['d/ directory', 'd/b layer 0', 'd/c = d/b']],
    [
      'a hard link keeps what it shared when the first name is replaced',
      [[file('a'), hard('b', 'a'), file('a')]],
      ['a layer 0', 'b layer 0'],
    ],
    ['a hard link keeps a file whose first name is hidden', [[file('a'), hard('b', 'a')], [hide('.wh.a')]], ['b layer 0']],
    ['a hard link to a link shares the link', [[link('a', '/x'), hard('b', 'a')]], ['a -> /x', 'b = a']],
    ['an absolute link is data', [[link('a', '/etc/shadow')]], ['a -> /etc/shadow']],
    ['a link out of the tree is data', [[link('a', '../../../etc')]], ['a -> ../../../etc']],
    [
      'an entry goes through a link to a folder',
      [[folder('usr/lib/'), link('lib', 'usr/lib')], [file('lib/x')]],
      ['lib -> usr/lib', 'usr/ directory', 'usr/lib/ directory', 'usr/lib/x layer 1'],
    ],
    [
      'an entry goes through an absolute link inside the image',
      [[folder('usr/'), link('l', '/usr')], [file('l/x')]],
      ['l -> /usr', 'usr/ directory', 'usr/x layer 1'],
    ],
    [
      'an entry through a link that leads out stays inside',
      [[link('l', '../../../up')], [file('l/x')]],
      ['l -> ../../../up', 'up/ directory', 'up/x layer 1'],
    ],
    ['a whiteout goes through links as well', [[file('usr/x'), link('l', 'usr')], [hide('l/.wh.x')]], ['l -> usr', 'usr/ directory']],
    [
      'names differ by case and by bytes',
      [[file('A'), file('a'), file('\xe9'), file('\xc3\xa9')]],
      ['A layer 0', 'a layer 0', '\xc3\xa9 layer 0', '\xe9 layer 0'],
    ],
    ['dots and slashes in names mean nothing', [[file('./a/./b'), file('/c')]], ['a/ directory', 'a/b layer 0', 'c layer 0']],
  ];
  it.each(MERGES)('%s', async (_what, layers, lines) => {
    expect((await show(...layers)).slice(1)).toEqual(lines);
  });

  it('takes attributes of folders and of the root from the highest layer that says them', async () => {
    const [root, implied, said] = await merge([
      [folder('./', { mode: 0o711, uid: 5 }), folder('b/', { mode: 0o700 }), file('a/x')],
      [folder('b/', { mode: 0o1777, gid: 3 })],
    ]).then((entries) => entries.filter(({ entry }) => entry.type === 'directory'));
    expect(root?.entry).toMatchObject({ path: './', mode: 0o711, uid: 5 });
    expect(implied?.entry).toMatchObject({ path: 'a/', mode: 0o755, uid: 0, gid: 0 });
    expect(said?.entry).toMatchObject({ path: 'b/', mode: 0o1777, gid: 3, uid: 0 });
  });

  it('counts names of one file as one inode', async () => {
    expect(countInodes(await merge([[file('a'), hard('b', 'a'), folder('d/')]]))).toBe(3);
  });

  it('takes whiteout names as they are where there are no layers', async () => {
    const entries = await merge([[file('.wh.a', { content: 'x' })]], {}, false);
    expect(entries.map(({ entry }) => entry.path)).toEqual(['./', '.wh.a']);
  });

  it('gives one order and one name for any order of the archive', async () => {
    const some = [file('b'), file('a/y'), folder('a/', { mode: 0o750 }), file('a.b'), file('a/x')];
    const paths = (await merge([some])).map(({ entry }) => entry.path);
    expect((await merge([[...some].reverse()])).map(({ entry }) => entry.path)).toEqual(paths);
    expect(paths).toEqual(['./', 'a/', 'a/x', 'a/y', 'a.b', 'b']);
  });

  /** Links that double the way with each one. */
  const chain = Array.from({ length: 45 }, (_, at) => link(`l${at}`, `l${at + 1}/l${at + 1}`));
  const loop = [link('a', 'b'), link('b', 'a')];
  /** [what, the layers] */
  const REFUSED: readonly (readonly [string, readonly (readonly RawEntry[])[]])[] = [
    ['a name with ..', [[file('a/../../b')]]],
    ['a hard link through ..', [[file('a'), hard('b', '../a')]]],
    ['a name with a NUL', [[{ ...file('a'), pax: { path: 'a\0b' } }]]],
    ['a name that no file system holds', [[{ ...file('a'), pax: { path: 'n'.repeat(256) } }]]],
    ['a path that no kernel takes', [[{ ...file('a'), pax: { path: 'abc/'.repeat(1_100) } }]]],
    ['a path of too many folders', [[{ ...file('a'), pax: { path: 'a/'.repeat(300) } }]]],
    ['a link that no kernel follows', [[{ ...link('a', 'b'), pax: { linkpath: 'b'.repeat(5_000) } }]]],
    ['a device with numbers that no kernel has', [[{ name: 'a', type: '3', major: 0o10000, minor: 1 }]]],
    ['a root that is a file', [[file('./')], [{ ...file('.'), content: 'x' }]]],
    ['an entry below a file', [[file('a'), file('a/b')]]],
    ['a hard link to nothing', [[hard('a', 'b')]]],
    ['a hard link to a folder', [[folder('d/'), hard('a', 'd')]]],
    ['a hard link to what its own layer hides', [[file('a')], [hide('.wh.a'), hard('b', 'a')]]],
    ['an entry through a loop of links', [[...loop], [file('a/x')]]],
    ['an entry through links that multiply', [chain, [file('l0/x')]]],
    ['a whiteout with content', [[{ ...hide('.wh.a'), content: 'x' }]]],
    ['a whiteout that is a folder', [[folder('.wh.a/')]]],
    ['a whiteout of nothing', [[hide('.wh.')]]],
    ['a whiteout of the folder above', [[hide('d/.wh...')]]],
    ['a whiteout of an unknown kind', [[hide('.wh..wh.plnk')]]],
    ['something below a whiteout', [[file('.wh.a/b')]]],
  ];
  it.each(REFUSED)('refuses %s', async (_what, layers) => {
    expect(await merge(layers).catch(codeOf)).toBe('entry_refused');
  });

  it('bounds layers, entries, and steps through links', async () => {
    const three = [[file('a')], [file('b')], [file('c')]];
    expect(await merge(three, { maxLayers: 2 }).catch(codeOf)).toBe('image_too_large');
    expect(await merge(three, { maxEntries: 2 }).catch(codeOf)).toBe('image_too_large');
    const deep = [file('a/b/c/d/e/f'), file('a/b/c/d/e/g')];
    expect(await merge([deep], { maxResolveSteps: 9 }).catch(codeOf)).toBe('image_too_large');
    expect(await merge([deep], { maxResolveSteps: 10 })).toHaveLength(8);
  });
});
