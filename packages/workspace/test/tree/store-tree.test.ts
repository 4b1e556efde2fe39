import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { CodedError } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { storeTree, unpackTree } from '../../src/index.ts';
import { packBytes } from './pack-bytes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();

async function archive(): Promise<Buffer> {
  mkdirSync(at('root/empty'), { recursive: true });
  mkdirSync(at('root/sub'));
  writeFileSync(at('root/sub/file'), 'x'.repeat(5000));
  return Buffer.from((await packBytes(at('root'))).bytes);
}

describe('storeTree', () => {
  it('takes the place of the old tree, keeps what is carried over, and counts what it stored', async () => {
    mkdirSync(at('dest/.git'), { recursive: true });
    writeFileSync(at('dest/old'), '');
    const stored = await storeTree([await archive()], at('dest'), { carryOver: ['.git'] });
    expect(stored).toEqual({ entries: 2, contentBytes: 5000, leftover: undefined });
    expect(readdirSync(at('dest')).sort()).toEqual(['.git', 'empty', 'sub']);
    expect(readFileSync(at('dest/sub/file'), 'utf8')).toBe('x'.repeat(5000));
    expect(readdirSync(at()).sort()).toEqual(['dest', 'root']);
  });

  it.each([
    ['a cut archive', (bytes: Buffer) => bytes.subarray(0, 2000), {}],
    ['content beyond the limit', (bytes: Buffer) => bytes, { maxTotalBytes: 4999 }],
  ])('changes nothing for %s', async (_name, change, limits) => {
    const bytes = await archive();
    mkdirSync(at('dest'));
    writeFileSync(at('dest/old'), '');
    await expect(storeTree([change(bytes)], at('dest'), { limits })).rejects.toMatchObject({ code: 'archive_refused' });
    expect(readdirSync(at('dest'))).toEqual(['old']);
    expect(readdirSync(at()).sort()).toEqual(['dest', 'root']);
  });

  it('changes nothing when what pours the archive fails', async () => {
    const bytes = await archive();
    const failing = async (take: (part: Uint8Array) => void) => {
      take(bytes.subarray(0, 1024));
      throw new CodedError('link_lost', 'gone');
    };
    await expect(storeTree(failing, at('dest'))).rejects.toMatchObject({ code: 'link_lost' });
    expect(readdirSync(at())).toEqual(['root']);
  });
});

describe('the proof of a source', () => {
  it('is asked with what arrived, after the end, and its rejection changes nothing', async () => {
    const bytes = await archive();
    await expect(
      unpackTree([bytes], at('dest'), { proof: () => Promise.reject(new CodedError('transfer_cut', 'cut')) }),
    ).rejects.toMatchObject({ code: 'transfer_cut' });
    expect(readdirSync(at())).toEqual(['root']);
    const asked: unknown[] = [];
    const { trailer, snapshotId } = await unpackTree([bytes], at('dest'), { proof: async (received) => asked.push(received) });
    expect(trailer).toEqual({ entries: 2, bytes: bytes.length, digest: snapshotId });
    expect(asked).toEqual([trailer]);
  });
});
