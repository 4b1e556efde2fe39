import { mkdirSync, writeFileSync } from 'node:fs';
import { Writable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicaliseArchive, PACK_CHUNK_BYTES, packTree, scanTree, storeTree, unpackTree, writeLent } from '../../src/index.ts';
import { buildTree, plans } from './build-tree.ts';
import { packBytes } from './pack-bytes.ts';
import { temporaryFolder } from './temporary-folder.ts';

const at = temporaryFolder();

/** Pours bytes in pieces that all lie in the same memory, which is wiped behind each. */
function pourLent(bytes: Buffer, size: number): (take: (part: Uint8Array) => void) => Promise<void> {
  return async (take) => {
    const memory = Buffer.alloc(size);
    for (let from = 0; from < bytes.length; from += size) {
      const length = bytes.copy(memory, 0, from, from + size);
      take(memory.subarray(0, length));
      memory.fill(0xee);
    }
  };
}

describe('chunks that are lent', () => {
  it('leave the same tree as chunks that are kept, wherever they are cut', async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(plans, fc.integer({ min: 1, max: 1500 }), async (items, size) => {
        round += 1;
        const name = (what: string) => at(`${what}-${round}`);
        buildTree(name('root'), items);
        const { bytes } = await packBytes(name('root'));
        const { snapshotId } = await scanTree(name('root'));
        expect((await unpackTree(pourLent(bytes, size), name('unpacked'))).snapshotId).toBe(snapshotId);
        expect((await canonicaliseArchive(pourLent(bytes, size), name('blob'))).snapshotId).toBe(snapshotId);
        await storeTree(pourLent(bytes, size), name('stored'));
        for (const copy of ['unpacked', 'stored']) expect((await scanTree(name(copy))).snapshotId).toBe(snapshotId);
      }),
      { numRuns: 40 },
    );
  });

  it('come from a pack in one memory, and hold what its stream holds', async () => {
    mkdirSync(at('root'));
    writeFileSync(at('root/file'), Buffer.alloc(3 * PACK_CHUNK_BYTES, 'pattern'));
    const kept: Buffer[] = [];
    const memories = new Set<ArrayBufferLike>();
    const { chunks, done } = packTree(at('root'));
    for await (const chunk of chunks) {
      memories.add(chunk.buffer);
      kept.push(Buffer.from(chunk));
    }
    const { bytes, report } = await packBytes(at('root'));
    expect(Buffer.concat(kept).equals(bytes)).toBe(true);
    expect(await done).toEqual(report);
    expect(report.digest).toBe((await scanTree(at('root'))).snapshotId);
    expect(memories.size).toBe(1);
  });

  it('settle the report of their pack as cut when they are left early', async () => {
    mkdirSync(at('root'));
    writeFileSync(at('root/file'), Buffer.alloc(3 * PACK_CHUNK_BYTES));
    const { chunks, done } = packTree(at('root'));
    for await (const _chunk of chunks) break;
    await expect(done).rejects.toMatchObject({ code: 'pack_cut' });
    const unread = packTree(at('root'));
    unread.stream.destroy();
    await expect(unread.done).rejects.toMatchObject({ code: 'pack_cut' });
  });
});

describe('writeLent', () => {
  it('asks for the next chunk when the last is done with', async () => {
    const memory = Buffer.alloc(4);
    function* source(): Generator<Buffer> {
      for (let turn = 1; turn <= 5; turn += 1) yield memory.fill(turn);
    }
    const got: string[] = [];
    const slow = new Writable({
      highWaterMark: 1_000,
      write: (chunk: Buffer, _encoding, done) => {
        setImmediate(() => {
          got.push(chunk.toString('hex'));
          done();
        });
      },
    });
    await writeLent(source(), slow);
    expect(got).toEqual(['01010101', '02020202', '03030303', '04040404', '05050505']);
    expect(slow.writableEnded).toBe(false);
  });

  it.each([
    ['fails', new Error('no room')],
    ['is closed', undefined],
  ])('ends its source when a stream %s that calls back for nothing', async (_name, failure) => {
    let ended = false;
    async function* source(): AsyncGenerator<Buffer> {
      try {
        for (;;) yield Buffer.alloc(1);
      } finally {
        ended = true;
      }
    }
    const silent = new Writable({ write: () => void setImmediate(() => silent.destroy(failure)) });
    silent.on('error', () => undefined);
    await expect(writeLent(source(), silent)).rejects.toThrow(failure?.message ?? 'closed');
    expect(ended).toBe(true);
  });
});
