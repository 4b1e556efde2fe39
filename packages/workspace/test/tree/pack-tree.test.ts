import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, symlinkSync, truncateSync } from 'node:fs';
import { chmod, mkdir, open, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { MAX_REPORTED_PATHS, PACK_CHUNK_BYTES, packTree, scanTree, unpackTree } from '../../src/index.ts';
import { packBytes } from './pack-bytes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();
const SPARSE_BYTES = 512 * 1024 ** 2;

describe('packTree', () => {
  it('gives the same bytes without a digest where none is asked for', async () => {
    await mkdir(at('root'));
    await writeFile(at('root/file'), 'x'.repeat(600_000));
    const [plain, proven] = [await packBytes(at('root'), { digest: false }), await packBytes(at('root'))];
    expect(plain.bytes.equals(proven.bytes)).toBe(true);
    expect([plain.report, proven.report.digest.length]).toEqual([{ ...proven.report, digest: '' }, 64]);
  });

  it('packs links as text, never what they lead to', async () => {
    await mkdir(at('root'));
    await writeFile(at('secret'), 'TOP-SECRET');
    await mkdir(at('outside'));
    await writeFile(at('outside/inner'), 'TOP-SECRET');
    await symlink(at('secret'), at('root/file'));
    await symlink(at('outside'), at('root/folder'));
    const { bytes, report } = await packBytes(at('root'));
    expect(bytes.includes('TOP-SECRET')).toBe(false);
    expect(report).toMatchObject({ links: 2, files: 0, complete: true });
  });

  it('skips FIFOs and sockets without opening them, and says so', async () => {
    await mkdir(at('root'));
    execFileSync('sh', ['-c', 'mkfifo "$0" "$1"', at('root/pipe'), at('root/.gitignore')]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(at('root/socket'), resolve));
    await writeFile(at('root/z'), 'after');
    const { report } = await packBytes(at('root'));
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
    const { report } = await packBytes(at('root'));
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

  it('sends a sparse file of 512 MiB in bounded memory', async () => {
    await mkdir(at('root'));
    const handle = await open(at('root/sparse'), 'w');
    await handle.truncate(SPARSE_BYTES);
    await handle.close();
    const { stream, done } = packTree(at('root'));
    let peak = 0;
    for await (const _chunk of stream) peak = Math.max(peak, process.memoryUsage().arrayBuffers);
    expect((await done).contentBytes).toBe(SPARSE_BYTES);
    expect(peak).toBeLessThan(SPARSE_BYTES / 4);
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
    expect((await packBytes(at('one'))).bytes.equals((await packBytes(at('two'))).bytes)).toBe(true);
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
    const { report } = await packBytes(at('root'), {
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
    expect((await packBytes(at('root'))).report).toMatchObject({ files: 7, omittedCount: 0 });
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
    const { report } = await packBytes(at('root'), { limits: { maxFileBytes: 5, maxDepth: 2 } });
    expect(report.skipped.map(({ path, reason }) => [path.toString(), reason])).toEqual([
      ['big', 'too_large'],
      ['d/e/deep', 'too_deep'],
    ]);
    expect(report.complete).toBe(false);
    await expect(packBytes(at('root'), { limits: { maxTotalBytes: 10 } })).rejects.toMatchObject({ code: 'tree_too_large' });
    await expect(packBytes(at('root'), { limits: { maxEntries: 2 } })).rejects.toMatchObject({ code: 'tree_too_large' });
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
    const { report } = await packBytes(at('root'));
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
