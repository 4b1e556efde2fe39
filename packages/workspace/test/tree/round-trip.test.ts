import { execFileSync } from 'node:child_process';
import { lstatSync } from 'node:fs';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import { extract } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { packTree, scanTree, unpackTree } from '../../src/index.ts';
import { buildTree, plans } from './build-tree.ts';
import { packBytes } from './pack-bytes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();

describe('packing and unpacking', () => {
  it('gives the same snapshot back, and the same bytes each time, for any tree', async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(plans, async (items) => {
        round += 1;
        const [root, copy] = [at(`root-${round}`), at(`copy-${round}`)];
        buildTree(root, items);
        const scan = await scanTree(root);
        const first = await packBytes(root);
        expect((await packBytes(root)).bytes.equals(first.bytes)).toBe(true);
        const unpacked = await unpackTree([first.bytes], copy, { trailer: first.report });
        expect(unpacked.snapshotId).toBe(scan.snapshotId);
        expect((await scanTree(copy)).snapshotId).toBe(scan.snapshotId);
        expect((await packBytes(copy)).bytes.equals(first.bytes)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it('writes what GNU tar reads to the same tree', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (items) => {
        const [root, copy] = [at('gnu-root'), at('gnu-copy')];
        buildTree(root, items);
        await mkdir(copy);
        execFileSync('tar', ['-x', '-C', copy], {
          input: (await packBytes(root)).bytes,
          stdio: ['pipe', 'ignore', 'ignore'],
          env: { LC_ALL: 'C', PATH: process.env.PATH },
        });
        expect((await scanTree(copy)).snapshotId).toBe((await scanTree(root)).snapshotId);
        await rm(root, { recursive: true });
        await rm(copy, { recursive: true });
      }),
      { numRuns: 20 },
    );
  });

  it.each(['gnu', 'pax', 'ustar'])('reads what GNU tar writes in its %s form to the same tree', async (format) => {
    buildTree(at('root'), []);
    await mkdir(at('root/deep/er'), { recursive: true });
    await mkdir(at('root/empty'));
    await writeFile(at('root/deep/er/file'), 'content', { mode: 0o600 });
    await writeFile(at('root/run'), '#!/bin/sh\n', { mode: 0o6755 });
    if (format !== 'ustar') {
      await writeFile(at('root', 'n'.repeat(200)), 'long');
      await symlink('t'.repeat(200), at('root/longlink'));
    }
    execFileSync('ln', [at('root/run'), at('root/hard')]);
    const tar = execFileSync('tar', ['-c', `--format=${format}`, '-C', at('root'), '.']);
    const unpacked = await unpackTree([tar], at('copy'));
    expect(unpacked.snapshotId).toBe((await scanTree(at('root'))).snapshotId);
    expect(lstatSync(at('copy/run')).ino).not.toBe(lstatSync(at('copy/hard')).ino);
  });

  it('writes what tar-stream reads entry by entry', async () => {
    await mkdir(at('root/a'), { recursive: true });
    await writeFile(at('root/a/ü'.concat('x'.repeat(120))), 'long');
    await writeFile(at('root/a-b'), 'first');
    await symlink('a/b', at('root/z'));
    const { stream } = packTree(at('root'));
    const seen: (string | undefined | null)[][] = [];
    const reader = extract();
    reader.on('entry', (header, content, next) => {
      seen.push([header.name, header.type, header.linkname]);
      content.on('end', next).resume();
    });
    await pipeline(stream, reader);
    expect(seen).toEqual([
      ['a-b', 'file', null],
      [`a/ü${'x'.repeat(120)}`, 'file', null],
      ['z', 'symlink', 'a/b'],
    ]);
  });

  it('sorts by bytes of the whole path, so that a folder does not stand before its siblings', async () => {
    await mkdir(at('root/a'), { recursive: true });
    await mkdir(at('root/b'));
    for (const name of ['a/x', 'a-b', 'a.c', 'a0', 'b-']) await writeFile(at('root', name), '');
    expect((await scanTree(at('root'))).entries.map(({ path }) => Buffer.from(path).toString())).toEqual([
      'a-b',
      'a.c',
      'a/x',
      'a0',
      'b-',
      'b',
    ]);
  });
});
