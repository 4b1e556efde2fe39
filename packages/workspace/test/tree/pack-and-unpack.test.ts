import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { chmod, mkdir, open, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import { extract } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { MAX_REPORTED_PATHS, PACK_CHUNK_BYTES, type PackOptions, packTree, scanTree, unpackTree } from '../../src/index.ts';
import { buildTree, plans } from './build-tree.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();
const pack = async (root: string, options: PackOptions = {}) => {
  const { stream, done } = packTree(root, options);
  return { bytes: await buffer(stream), report: await done };
};

describe('packing and unpacking', () => {
  it('gives the same snapshot back, and the same bytes each time, for any tree', async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(plans, async (items) => {
        round += 1;
        const [root, copy] = [at(`root-${round}`), at(`copy-${round}`)];
        buildTree(root, items);
        const scan = await scanTree(root);
        const first = await pack(root);
        expect((await pack(root)).bytes.equals(first.bytes)).toBe(true);
        const unpacked = await unpackTree([first.bytes], copy, { trailer: first.report });
        expect(unpacked.snapshotId).toBe(scan.snapshotId);
        expect((await scanTree(copy)).snapshotId).toBe(scan.snapshotId);
        expect((await pack(copy)).bytes.equals(first.bytes)).toBe(true);
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
          input: (await pack(root)).bytes,
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

describe('packTree', () => {
  it('packs links as text, never what they lead to', async () => {
    await mkdir(at('root'));
    await writeFile(at('secret'), 'TOP-SECRET');
    await mkdir(at('outside'));
    await writeFile(at('outside/inner'), 'TOP-SECRET');
    await symlink(at('secret'), at('root/file'));
    await symlink(at('outside'), at('root/folder'));
    const { bytes, report } = await pack(at('root'));
    expect(bytes.includes('TOP-SECRET')).toBe(false);
    expect(report).toMatchObject({ links: 2, files: 0, complete: true });
  });

  it('skips FIFOs and sockets without opening them, and says so', async () => {
    await mkdir(at('root'));
    execFileSync('mkfifo', [at('root/pipe'), at('root/.gitignore')]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(at('root/socket'), resolve));
    await writeFile(at('root/z'), 'after');
    const { report } = await pack(at('root'));
    await new Promise((resolve) => server.close(resolve));
    expect(report.skipped.map(({ path, reason }) => [path.toString(), reason])).toEqual([
      ['.gitignore', 'special_file'],
      ['pipe', 'special_file'],
      ['socket', 'special_file'],
    ]);
    expect(report).toMatchObject({ files: 1, complete: true });
  });

  it('drops `.git` in any spelling at any depth and a symbolic `.gitmodules`', async () => {
    for (const name of ['.git', 'sub/.GIT', 'sub/GIT~1']) await mkdir(at('root', name), { recursive: true });
    await writeFile(at('root/.git/config'), '');
    await writeFile(at('root/sub/file'), '');
    await symlink('x', at('root/.gitmodules'));
    const { report } = await pack(at('root'));
    expect(report.skipped.map(({ path, reason }) => [path.toString(), reason])).toEqual([
      ['.git', 'git_metadata'],
      ['.gitmodules', 'gitmodules_link'],
      ['sub/.GIT', 'git_metadata'],
      ['sub/GIT~1', 'git_metadata'],
    ]);
    expect(report.files).toBe(1);
  });

  it.each([
    ['grows', (path: string) => appendFileSync(path, 'more'), undefined],
    ['shrinks', (path: string) => truncateSync(path, 10), 10],
  ])('keeps in step when a file %s while it is read, and names it', async (_name, change, kept) => {
    const size = 4 * PACK_CHUNK_BYTES;
    await mkdir(at('root'));
    await writeFile(at('root/log'), Buffer.alloc(size, 0x61));
    await writeFile(at('root/z'), 'after');
    const { stream, done } = packTree(at('root'));
    let changed = false;
    async function* changing() {
      for await (const chunk of stream) {
        if (!changed) change(at('root/log'));
        changed = true;
        yield chunk;
      }
    }
    const unpacked = await unpackTree(changing(), at('copy'), { trailer: () => done });
    expect((await done).changed.map(String)).toEqual(['log']);
    const content = readFileSync(at('copy/log'));
    expect(content.length).toBe(size);
    if (kept !== undefined) expect(content.at(-1)).toBe(0);
    expect(readFileSync(at('copy/z'), 'utf8')).toBe('after');
    expect(unpacked.skippedCount).toBe(0);
  });

  it('sends a sparse file of a GiB in bounded memory', async () => {
    await mkdir(at('root'));
    const handle = await open(at('root/sparse'), 'w');
    await handle.truncate(1024 ** 3);
    await handle.close();
    const { stream, done } = packTree(at('root'));
    let peak = 0;
    for await (const _chunk of stream) peak = Math.max(peak, process.memoryUsage().arrayBuffers);
    expect((await done).contentBytes).toBe(1024 ** 3);
    expect(peak).toBeLessThan(256 * 1024 ** 2);
  });

  it('is deterministic whatever the times, the order of creation and the other mode bits', async () => {
    for (const [root, order, mode] of [
      ['one', ['a', 'b', 'c'], 0o640],
      ['two', ['c', 'a', 'b'], 0o606],
    ] as const) {
      await mkdir(at(root));
      for (const name of order) {
        await writeFile(at(root, name), name);
        await chmod(at(root, name), mode);
      }
    }
    expect((await pack(at('one'))).bytes.equals((await pack(at('two'))).bytes)).toBe(true);
  });

  it('leaves out what the exclusion rule says, with counts, and keeps what is tracked', async () => {
    for (const name of [
      'node_modules/a/b.js',
      'node_modules/c.js',
      'pkg/node_modules/d.js',
      'dist/e.js',
      'build/f',
      'target/g',
      'src/dist/h',
    ]) {
      await mkdir(at('root', name, '..'), { recursive: true });
      await writeFile(at('root', name), '');
    }
    const { report } = await pack(at('root'), {
      exclude: true,
      trackedPaths: new Set(['build/f', 'pkg/index.js']),
      isIgnored: (folder) => folder.toString() === 'target' || folder.toString() === 'pkg/node_modules',
    });
    expect(report.omitted.map(({ path, ...rest }) => ({ path: path.toString(), ...rest }))).toEqual([
      { path: 'node_modules', rule: 'hard_list', warn: true, files: 2, countIsExact: true },
      { path: 'pkg/node_modules', rule: 'ignored', warn: false, files: 1, countIsExact: true },
      { path: 'target', rule: 'ignored', warn: false, files: 1, countIsExact: true },
    ]);
    expect(report).toMatchObject({ files: 3, omittedCount: 3, complete: true });
    expect((await pack(at('root'))).report).toMatchObject({ files: 7, omittedCount: 0 });
  });

  it('packs only the wanted paths when they are given', async () => {
    for (const name of ['a/x', 'a/y', 'b/z', 'ignored/w']) {
      await mkdir(at('root', name, '..'), { recursive: true });
      await writeFile(at('root', name), '');
    }
    const { entries } = await scanTree(at('root'), { onlyPaths: new Set(['a/x', 'b/z', 'gone']) });
    expect(entries.map(({ path }) => Buffer.from(path).toString())).toEqual(['a/x', 'b/z']);
  });

  it('reports what is out of bounds as incomplete, and refuses a tree that is too large', async () => {
    await mkdir(at('root/d/e'), { recursive: true });
    await writeFile(at('root/big'), '123456');
    await writeFile(at('root/d/e/deep'), '');
    await writeFile(at('root/small'), '12345');
    const { report } = await pack(at('root'), { limits: { maxFileBytes: 5, maxDepth: 2 } });
    expect(report.skipped.map(({ path, reason }) => [path.toString(), reason])).toEqual([
      ['big', 'too_large'],
      ['d/e/deep', 'too_deep'],
    ]);
    expect(report.complete).toBe(false);
    await expect(pack(at('root'), { limits: { maxTotalBytes: 10 } })).rejects.toMatchObject({ code: 'tree_too_large' });
    await expect(pack(at('root'), { limits: { maxEntries: 2 } })).rejects.toMatchObject({ code: 'tree_too_large' });
  });

  it('fails for a root that is not there, and its report fails alike', async () => {
    const { stream, done } = packTree(at('gone'));
    await expect(buffer(stream)).rejects.toMatchObject({ code: 'tree_unreadable' });
    await expect(done).rejects.toMatchObject({ code: 'tree_unreadable' });
  });

  it('gives no report for a pack that was stopped', async () => {
    await mkdir(at('root'));
    const { stream, done } = packTree(at('root'));
    stream.destroy();
    await expect(done).rejects.toMatchObject({ code: 'pack_cut' });
  });

  it('keeps the lists of its report bounded and counts on', async () => {
    await mkdir(at('root'));
    for (let index = 0; index <= MAX_REPORTED_PATHS; index += 1) mkdirSync(at('root', `d${index}/.git`), { recursive: true });
    const { report } = await pack(at('root'));
    expect(report.skipped.length).toBe(MAX_REPORTED_PATHS);
    expect(report.skippedCount).toBe(MAX_REPORTED_PATHS + 1);
  });

  it('follows no folder that became a link between listing and opening', async () => {
    await mkdir(at('root/a'), { recursive: true });
    await mkdir(at('outside'));
    await writeFile(at('outside/secret'), 'TOP-SECRET');
    // The first file is larger than what the stream reads ahead, so the change comes after the listing of the root.
    await writeFile(at('root/0'), Buffer.alloc(8 * PACK_CHUNK_BYTES));
    const { stream, done } = packTree(at('root'));
    const chunks: Buffer[] = [];
    for await (const chunk of stream) {
      if (chunks.length === 0) {
        await rm(at('root/a'), { recursive: true });
        symlinkSync(at('outside'), at('root/a'));
      }
      chunks.push(chunk);
    }
    expect(Buffer.concat(chunks).includes('TOP-SECRET')).toBe(false);
    expect((await done).skipped).toEqual([{ path: Buffer.from('a'), reason: 'vanished' }]);
  });
});

describe('unpackTree', () => {
  const archive = async () => {
    await mkdir(at('root/sub'), { recursive: true });
    await writeFile(at('root/new'), 'new');
    await writeFile(at('root/sub/file'), 'x'.repeat(5000));
    return pack(at('root'));
  };

  it('replaces the old tree as a whole, so that a deletion arrives', async () => {
    await mkdir(at('dest'));
    await writeFile(at('dest/old'), 'old');
    await unpackTree([(await archive()).bytes], at('dest'));
    expect(readdirSync(at('dest')).sort()).toEqual(['new', 'sub']);
    expect(readdirSync(at()).sort()).toEqual(['dest', 'root']);
  });

  it("removes a link in the destination's place, never what it leads to", async () => {
    await mkdir(at('elsewhere'));
    await writeFile(at('elsewhere/kept'), '');
    await symlink(at('elsewhere'), at('dest'));
    await unpackTree([(await archive()).bytes], at('dest'));
    expect(lstatSync(at('dest')).isDirectory()).toBe(true);
    expect(readdirSync(at('elsewhere'))).toEqual(['kept']);
  });

  it('leaves the destination untouched for a stream cut at any block, and nothing beside it', async () => {
    const { bytes } = await archive();
    await mkdir(at('dest'));
    await writeFile(at('dest/old'), 'old');
    for (let cut = 0; cut < bytes.length; cut += 256) {
      await expect(unpackTree([bytes.subarray(0, cut)], at('dest'))).rejects.toMatchObject({ code: 'archive_refused' });
    }
    expect(readdirSync(at('dest'))).toEqual(['old']);
    expect(readdirSync(at()).sort()).toEqual(['dest', 'root']);
  });

  it('reports a stream that fails as cut', async () => {
    const { bytes } = await archive();
    async function* failing() {
      yield bytes.subarray(0, 700);
      throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    }
    await expect(unpackTree(failing(), at('dest'))).rejects.toMatchObject({
      code: 'archive_cut',
      message: expect.stringContaining('ECONNRESET'),
    });
    expect(existsSync(at('dest'))).toBe(false);
  });

  it.each(['entries', 'bytes', 'digest'] as const)('refuses a trailer with other %s', async (field) => {
    const { bytes, report } = await archive();
    const trailer = { entries: report.entries, bytes: report.bytes, digest: report.digest };
    const wrong = { ...trailer, [field]: field === 'digest' ? 'f'.repeat(64) : trailer[field] + 1 };
    await expect(unpackTree([bytes], at('dest'), { trailer: wrong })).rejects.toMatchObject({ code: 'archive_trailer_mismatch' });
    expect(existsSync(at('dest'))).toBe(false);
    await unpackTree([bytes], at('dest'), { trailer: async () => trailer });
    expect(existsSync(at('dest/new'))).toBe(true);
  });

  it('refuses another snapshot than the wanted one', async () => {
    const { bytes } = await archive();
    await expect(unpackTree([bytes], at('dest'), { snapshotId: '0'.repeat(64) })).rejects.toMatchObject({
      code: 'snapshot_mismatch',
    });
    expect(existsSync(at('dest'))).toBe(false);
  });

  it("drops guest modes and the process's mask", async () => {
    await mkdir(at('root'));
    await writeFile(at('root/run'), '', { mode: 0o777 });
    await writeFile(at('root/text'), '', { mode: 0o600 });
    await mkdir(at('root/d'), { mode: 0o700 });
    const { bytes } = await pack(at('root'));
    const mask = process.umask(0o077);
    try {
      await unpackTree([bytes], at('dest'));
    } finally {
      process.umask(mask);
    }
    const mode = (name: string) => lstatSync(at('dest', name)).mode & 0o7777;
    expect(['', 'run', 'text', 'd'].map(mode)).toEqual([0o755, 0o755, 0o644, 0o755]);
  });

  it('carries the names over that the host keeps, and puts them back when it fails', async () => {
    await mkdir(at('dest/.git'), { recursive: true });
    await writeFile(at('dest/.git/HEAD'), 'ours');
    await expect(unpackTree([Buffer.from('x')], at('dest'), { carryOver: ['.git'] })).rejects.toMatchObject({
      code: 'archive_refused',
    });
    expect(readFileSync(at('dest/.git/HEAD'), 'utf8')).toBe('ours');
    await unpackTree([(await archive()).bytes], at('dest'), { carryOver: ['.git', 'absent'] });
    expect(readdirSync(at('dest')).sort()).toEqual(['.git', 'new', 'sub']);
  });

  it('says when there is no place beside the destination', async () => {
    await expect(unpackTree(Readable.from([]), at('no/such/parent'))).rejects.toMatchObject({ code: 'staging_failed' });
  });

  it('handles a path as long as a path can be', async () => {
    const deep = Array.from({ length: 19 }, () => 'd'.repeat(200)).join('/');
    const chain = deep.split('/');
    mkdirSync(at('root'));
    execFileSync('sh', ['-c', `${chain.map((name) => `mkdir ${name} && cd ${name}`).join(' && ')} && echo deep > file`], {
      cwd: at('root'),
    });
    const { bytes, report } = await pack(at('root'));
    expect(report).toMatchObject({ files: 1, complete: true });
    expect((await unpackTree([bytes], at('dest'))).snapshotId).toBe((await scanTree(at('root'))).snapshotId);
  });

  it('brings a 2 MiB file and a file of quotes and substitutions unchanged', async () => {
    const odd = 'it\'s "$(touch x)" `id` \\ %s\n';
    await mkdir(at('root'));
    writeFileSync(at('root/big'), Buffer.alloc(2 * 1024 ** 2, 'pattern'));
    writeFileSync(at('root', odd.replaceAll('/', '').trim()), odd);
    await symlink('up/../down', at('root/link'));
    const { bytes } = await pack(at('root'));
    await unpackTree([bytes], at('dest'));
    expect(readFileSync(at('dest/big')).equals(readFileSync(at('root/big')))).toBe(true);
    expect(readFileSync(at('dest', odd.trim()), 'utf8')).toBe(odd);
    expect(readlinkSync(at('dest/link'))).toBe('up/../down');
    await truncate(at('root/big'), 0);
    expect(lstatSync(at('dest/big')).size).toBe(2 * 1024 ** 2);
  });
});
