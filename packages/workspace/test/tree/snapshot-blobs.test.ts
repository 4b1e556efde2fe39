import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { tarEnd, tarPadding, writeTarHeader } from '@firecrew/artifact-capture';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicaliseArchive,
  openBlobFile,
  packTree,
  readBlobEntries,
  readManifestOfBlob,
  readSnapshotBlob,
  scanTree,
  snapshotDirectory,
  writeSnapshotBlob,
} from '../../src/index.ts';
import { buildTree, plans } from './build-tree.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();
const digestOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');
const file = (path: string, content = '') => [
  writeTarHeader({ path: Buffer.from(path), kind: 'file', size: content.length }),
  Buffer.from(content),
  tarPadding(content.length),
];
const folder = (path: string) => [writeTarHeader({ path: Buffer.from(path), kind: 'directory', size: 0 })];
const archive = (...parts: Uint8Array[][]) => Buffer.concat([...parts.flat(), tarEnd()]);

async function sampleTree(): Promise<string> {
  await mkdir(at('root/a'), { recursive: true });
  await mkdir(at('root/empty'));
  await writeFile(at('root/a/x.txt'), 'hello');
  await writeFile(at('root/run'), 'go', { mode: 0o755 });
  await writeFile(at('root/zero'), '');
  await symlink('/etc/passwd', at('root/link'));
  return at('root');
}

describe('snapshot blobs', () => {
  it('hold the same tree, by the same digest, from a folder, a canonical stream and a shuffled one', async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(plans, async (items) => {
        round += 1;
        const root = at(`root-${round}`);
        buildTree(root, items);
        const scan = await scanTree(root);
        const taken = await snapshotDirectory(root, at('one'));
        const streamed = await canonicaliseArchive(packTree(root).stream, at('two'));
        expect(streamed).toMatchObject({ snapshotId: scan.snapshotId, blobDigest: taken.blobDigest, bytes: taken.bytes, skippedCount: 0 });
        expect(digestOf(at('one'))).toBe(taken.blobDigest);
        const read = await readManifestOfBlob(at('two'), { blobDigest: taken.blobDigest, snapshotId: scan.snapshotId });
        expect(read.entries.length).toBe(scan.entries.length);
        const unpacked = await readSnapshotBlob(at('one'), at(`copy-${round}`), {
          blobDigest: taken.blobDigest,
          snapshotId: scan.snapshotId,
        });
        expect(unpacked.snapshotId).toBe(scan.snapshotId);
        expect((await scanTree(at(`copy-${round}`))).snapshotId).toBe(scan.snapshotId);
      }),
      { numRuns: 40 },
    );
  });

  it('bring an archive in any order into the canonical one', async () => {
    const shuffled = archive(folder('d'), file('z', 'last'), file('d/b', 'bee'), folder('void'), file('d/a'), file('a', 'first'));
    const taken = await canonicaliseArchive([shuffled], at('blob'));
    const tar = zstdDecompressSync(readFileSync(at('blob')));
    expect(tar.equals(archive(file('a', 'first'), file('d/a'), file('d/b', 'bee'), folder('void'), file('z', 'last')))).toBe(true);
    expect((await readManifestOfBlob(at('blob'))).snapshotId).toBe(taken.snapshotId);
  });

  it('are written by one call for a folder or a stream', async () => {
    const root = await sampleTree();
    const one = await writeSnapshotBlob(root, at('one'));
    expect((await writeSnapshotBlob(packTree(root).stream, at('two'))).blobDigest).toBe(one.blobDigest);
  });

  it('give a manifest that keeps nothing of the archive it was read from', async () => {
    await snapshotDirectory(await sampleTree(), at('blob'));
    const { entries } = await readManifestOfBlob(at('blob'));
    expect(entries.map(({ path }) => path.buffer.byteLength)).toEqual(entries.map(({ path }) => path.byteLength));
  });

  it('leave nothing behind when the archive is refused or the trailer differs', async () => {
    await expect(canonicaliseArchive([archive(file('a')).subarray(0, 700)], at('blob'))).rejects.toMatchObject({ code: 'archive_refused' });
    const trailer = { entries: 2, bytes: 1, digest: '' };
    await expect(canonicaliseArchive([archive(file('a'))], at('blob'), { trailer })).rejects.toMatchObject({
      code: 'archive_trailer_mismatch',
    });
    expect(readdirSync(at())).toEqual([]);
  });

  it('give one entry after the other with its content, read or not', async () => {
    await snapshotDirectory(await sampleTree(), at('blob'));
    const seen: (string | number)[][] = [];
    for await (const entry of readBlobEntries(at('blob'))) {
      const content = entry.path.toString() === 'run' ? 'not read' : await text(entry.content);
      seen.push([entry.path.toString(), entry.kind, entry.size, content]);
    }
    expect(seen).toEqual([
      ['a/x.txt', 'file', 5, 'hello'],
      ['empty', 'directory', 0, ''],
      ['link', 'link', 11, '/etc/passwd'],
      ['run', 'executable', 2, 'not read'],
      ['zero', 'file', 0, ''],
    ]);
  });
});

describe('openBlobFile', () => {
  it('streams one file, or the text of a link', async () => {
    await snapshotDirectory(await sampleTree(), at('blob'));
    const open = async (path: string) => {
      const opened = await openBlobFile(at('blob'), Buffer.from(path));
      return opened && [opened.kind, opened.size, await text(opened.stream)];
    };
    expect(await open('a/x.txt')).toEqual(['file', 5, 'hello']);
    expect(await open('run')).toEqual(['executable', 2, 'go']);
    expect(await open('link')).toEqual(['link', 11, '/etc/passwd']);
    expect(await open('zero')).toEqual(['file', 0, '']);
  });

  it.each(['gone', 'a', 'empty', '../root/run', '/etc/passwd', 'a/./x.txt', ''])('has nothing at %j', async (path) => {
    await snapshotDirectory(await sampleTree(), at('blob'));
    expect(await openBlobFile(at('blob'), Buffer.from(path))).toBeUndefined();
  });

  it('lets go of the blob when its stream is not read', async () => {
    await mkdir(at('root'));
    await writeFile(at('root/big'), randomBytes(4 * 1024 ** 2));
    await snapshotDirectory(at('root'), at('blob'));
    const opened = await openBlobFile(at('blob'), Buffer.from('big'));
    const closed = new Promise((resolve) => opened?.stream.once('close', resolve));
    opened?.stream.destroy();
    await closed;
    await expect.poll(() => readdirSync('/proc/self/fd').length).toBeLessThan(200);
  });
});

describe('a blob that is not what it should be', () => {
  const zstd = (tar: Uint8Array) => writeFile(at('blob'), zstdCompressSync(tar));

  it('is refused when it is missing, cut, damaged or of another digest', async () => {
    await expect(readManifestOfBlob(at('blob'))).rejects.toMatchObject({ code: 'blob_missing' });
    await snapshotDirectory(await sampleTree(), at('whole'));
    const whole = readFileSync(at('whole'));
    await writeFile(at('blob'), whole.subarray(0, -10));
    await expect(readManifestOfBlob(at('blob'))).rejects.toMatchObject({ code: 'blob_corrupt' });
    const damaged = Buffer.from(whole);
    damaged[whole.length >> 1] = (damaged[whole.length >> 1] ?? 0) ^ 0xff;
    await writeFile(at('blob'), damaged);
    await expect(readManifestOfBlob(at('blob'))).rejects.toMatchObject({ code: 'blob_corrupt' });
    await writeFile(at('blob'), 'no zstd at all');
    await expect(readSnapshotBlob(at('blob'), at('dest'))).rejects.toMatchObject({ code: 'blob_corrupt' });
    await expect(readSnapshotBlob(at('whole'), at('dest'), { blobDigest: '0'.repeat(64) })).rejects.toMatchObject({ code: 'blob_corrupt' });
    await expect(readSnapshotBlob(at('whole'), at('dest'), { snapshotId: '0'.repeat(64) })).rejects.toMatchObject({
      code: 'snapshot_mismatch',
    });
    expect(existsSync(at('dest'))).toBe(false);
  });

  it('is refused when its content grows past the bounds, before it is stored', async () => {
    await zstd(archive(file('zeros', '\0'.repeat(64 * 1024 ** 2))));
    const limits = { maxFileBytes: 1024 ** 2 };
    await expect(readSnapshotBlob(at('blob'), at('dest'), { limits })).rejects.toMatchObject({ code: 'archive_refused' });
    await expect(readManifestOfBlob(at('blob'), { limits })).rejects.toMatchObject({ code: 'archive_refused' });
    await zstd(Buffer.concat([archive(), Buffer.alloc(64 * 1024 ** 2)]));
    await expect(readManifestOfBlob(at('blob'))).rejects.toMatchObject({ code: 'archive_refused' });
  });

  it.each<[string, Uint8Array]>([
    ['out of order', archive(file('b'), file('a'))],
    ['with a folder that is not empty', archive(folder('d'), file('d/a'))],
    ['with an entry to drop', archive(file('.git/config'))],
    ['with a name in another form', archive(file('a'), file('./b'))],
    ['with more zeros behind the end mark', Buffer.concat([archive(file('a')), Buffer.alloc(512)])],
  ])('is refused %s', async (_name, tar) => {
    await zstd(tar);
    await expect(readManifestOfBlob(at('blob'))).rejects.toMatchObject({ code: 'blob_not_canonical' });
  });
});
