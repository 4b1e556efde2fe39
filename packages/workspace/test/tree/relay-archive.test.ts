import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { tarEnd, tarPadding, writeTarHeader } from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { relayArchive, replaceTree, unpackTree } from '../../src/index.ts';
import { packBytes } from './pack-bytes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();

async function archive(): Promise<Buffer> {
  mkdirSync(at('root/empty'), { recursive: true });
  mkdirSync(at('root/sub'));
  writeFileSync(at('root/sub/file'), 'x'.repeat(5000));
  return Buffer.from((await packBytes(at('root'))).bytes);
}

const pieces = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size));

describe('relayArchive', () => {
  it.each([1, 511, 4096, 1_000_000])('hands on the bytes as they are, in pieces of %i, and counts what they hold', async (size) => {
    const bytes = await archive();
    const got: Uint8Array[] = [];
    const held = await relayArchive(pieces(bytes, size), (chunk) => void got.push(chunk));
    expect(Buffer.concat(got).equals(bytes)).toBe(true);
    expect(held).toEqual({ entries: 2, contentBytes: 5000 });
  });

  it('refuses a cut archive', async () => {
    const bytes = await archive();
    await expect(relayArchive([bytes.subarray(0, 2000)], () => undefined)).rejects.toMatchObject({ code: 'archive_refused' });
  });

  it('refuses content beyond the limit before it is handed on', async () => {
    const got: Uint8Array[] = [];
    const relayed = relayArchive([await archive()], (chunk) => void got.push(chunk), { maxTotalBytes: 4999 });
    await expect(relayed).rejects.toMatchObject({ code: 'archive_refused' });
    expect(got).toEqual([]);
  });

  it('refuses an entry that the own unpacker would drop, since the other reader would store it', async () => {
    const header = writeTarHeader({ path: Buffer.from('.git/config'), kind: 'file', size: 1 });
    const bytes = Buffer.concat([header, Buffer.from('x'), tarPadding(1), tarEnd()]);
    await expect(relayArchive([bytes], () => undefined)).rejects.toMatchObject({ code: 'archive_refused' });
    expect((await unpackTree([bytes], at('dest'))).skippedCount).toBe(1);
  });

  it("keeps the writer's own error", async () => {
    const failing = () => Promise.reject(new CodedError('unpack_failed', 'no room'));
    await expect(relayArchive([await archive()], failing)).rejects.toMatchObject({ code: 'unpack_failed' });
  });
});

describe('replaceTree', () => {
  it('swaps in what was filled, and keeps what is carried over', async () => {
    mkdirSync(at('dest/.git'), { recursive: true });
    writeFileSync(at('dest/old'), '');
    const { value } = await replaceTree(at('dest'), ['.git'], async (folder) => writeFileSync(`${folder}/new`, ''));
    expect(value).toBeUndefined();
    expect(readdirSync(at('dest')).sort()).toEqual(['.git', 'new']);
    expect(readdirSync(at())).toEqual(['dest']);
  });

  it('changes nothing when filling fails', async () => {
    mkdirSync(at('dest'));
    writeFileSync(at('dest/old'), '');
    await expect(replaceTree(at('dest'), [], () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(readdirSync(at('dest'))).toEqual(['old']);
    expect(readdirSync(at())).toEqual(['dest']);
  });
});

describe('the proof of a source', () => {
  it('is asked after the end, and its rejection changes nothing', async () => {
    const bytes = await archive();
    await expect(
      unpackTree([bytes], at('dest'), { proof: () => Promise.reject(new CodedError('transfer_cut', 'cut')) }),
    ).rejects.toMatchObject({ code: 'transfer_cut' });
    expect(readdirSync(at())).toEqual(['root']);
    const { trailer } = await unpackTree([bytes], at('dest'), { proof: () => Promise.resolve() });
    expect(trailer).toEqual({ entries: 2, bytes: bytes.length, digest: '' });
  });
});
