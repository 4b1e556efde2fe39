import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { storeTreeOver } from '../../src/index.ts';
import { packBytes } from './pack-bytes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();

/** Files by their path, a link as `-> target`. */
function make(root: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(at(root), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(at(root), path, '..'), { recursive: true });
    if (text.startsWith('-> ')) symlinkSync(text.slice(3), join(at(root), path));
    else writeFileSync(join(at(root), path), text);
  }
}

function read(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isSymbolicLink()) found[path.slice(folder.length + 1)] = `-> ${readlinkSync(path)}`;
    else if (entry.isFile()) found[path.slice(folder.length + 1)] = readFileSync(path, 'utf8');
  }
  return found;
}

const layOver = async (prepare?: (tree: string) => Promise<void>) =>
  await storeTreeOver([(await packBytes(at('tree'))).bytes], at('dest'), prepare === undefined ? {} : { prepare });

describe('storeTreeOver', () => {
  it('merges folders, keeps what the tree does not name, and lets the tree win where it does', async () => {
    make('tree', {
      'src/a.js': 'tree',
      'src/deep/b.js': 'tree',
      'file-for-folder': 'tree',
      'folder-for-file/c': 'tree',
      link: '-> src/a.js',
    });
    make('dest', {
      ...{ 'node_modules/dep/x': 'product', 'src/a.js': 'product', 'src/made/y': 'product', 'src/deep/z': 'product' },
      ...{ 'file-for-folder/deep/w': 'product', 'folder-for-file': 'product', link: 'product' },
    });
    expect(await layOver()).toEqual({ entries: 5, contentBytes: 16, replaced: 4, leftover: undefined });
    expect(read(at('dest'))).toEqual({
      ...{ 'node_modules/dep/x': 'product', 'src/a.js': 'tree', 'src/made/y': 'product', 'src/deep/z': 'product', 'src/deep/b.js': 'tree' },
      ...{ 'file-for-folder': 'tree', 'folder-for-file/c': 'tree', link: '-> src/a.js' },
    });
    expect(readdirSync(at()).sort()).toEqual(['dest', 'tree']);
  });

  it('follows no link that lies in the place of a folder of the tree', async () => {
    make('outside', { 'a.js': 'outside' });
    make('tree', { 'src/a.js': 'tree' });
    make('dest', { src: `-> ${at('outside')}` });
    expect(await layOver()).toMatchObject({ replaced: 1 });
    expect([read(at('dest')), read(at('outside'))]).toEqual([{ 'src/a.js': 'tree' }, { 'a.js': 'outside' }]);
  });

  it('removes a folder that its owner closed, in the place of a file', async () => {
    make('tree', { x: 'tree' });
    make('dest', { 'x/closed/y': 'product' });
    chmodSync(at('dest/x/closed'), 0o000);
    expect(await layOver()).toMatchObject({ replaced: 1 });
    expect(read(at('dest'))).toEqual({ x: 'tree' });
  });

  it('gives the unpacked tree to be prepared before anything is moved', async () => {
    make('tree', { x: 'tree' });
    make('dest', { x: 'product' });
    await layOver(async (tree) => {
      expect([read(tree), read(at('dest'))]).toEqual([{ x: 'tree' }, { x: 'product' }]);
      chmodSync(join(tree, 'x'), 0o640);
    });
    expect(lstatSync(at('dest/x')).mode & 0o777).toBe(0o640);
    await expect(layOver(() => Promise.reject(new Error('not prepared')))).rejects.toThrow('not prepared');
    expect(readdirSync(at()).sort()).toEqual(['dest', 'tree']);
  });

  it('refuses a destination that is no folder, and a cut archive, and leaves both as they were', async () => {
    make('tree', { x: 'tree' });
    make('other', { y: 'other' });
    symlinkSync(at('other'), at('dest'));
    await expect(layOver()).rejects.toMatchObject({ code: 'lay_over_failed' });
    const { bytes } = await packBytes(at('tree'));
    await expect(storeTreeOver([bytes.subarray(0, 600)], at('other'))).rejects.toMatchObject({ code: 'archive_refused' });
    expect(read(at('other'))).toEqual({ y: 'other' });
    expect(readdirSync(at()).sort()).toEqual(['dest', 'other', 'tree']);
  });
});
