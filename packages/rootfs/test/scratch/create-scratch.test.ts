import { readdir, stat, writeFile } from 'node:fs/promises';
import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { createScratch, SCRATCH_LABEL } from '../../src/index.ts';
import { scratchOptions } from '../../src/scratch/create-scratch.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { itWith, runTool } from '../support/tools.ts';

const at = temporaryFolder();
const itMakes = itWith('mke2fs', 'dumpe2fs', 'e2fsck');

describe('a scratch disk', () => {
  for (const sizeMib of [64, 512, 8_192, 65_536])
    itMakes(`of ${sizeMib} MiB is whole, and takes almost nothing`, async () => {
      await createScratch({ path: at('s'), sizeMib });
      const { size, blocks, mode } = await stat(at('s'));
      expect([size, mode & 0o777]).toEqual([sizeMib * 1024 * 1024, 0o600]);
      expect(blocks * 512).toBeLessThan(8 * 1024 * 1024);
      runTool('e2fsck', ['-fn', at('s')]);
      expect(
        runTool('e2label', [at('s')])
          .toString()
          .trim(),
      ).toBe(SCRATCH_LABEL);
    });

  itMakes('is made the same way whatever this machine has configured', async () => {
    await createScratch({ path: at('s'), sizeMib: 64 });
    const facts = runTool('dumpe2fs', ['-h', at('s')]).toString();
    expect(/Filesystem features: +(.*)/.exec(facts)?.[1]).toBe(
      'has_journal ext_attr resize_inode dir_index filetype extent 64bit flex_bg sparse_super large_file huge_file dir_nlink extra_isize metadata_csum',
    );
    expect(/Reserved block count: +(.*)/.exec(facts)?.[1]).toBe('0');
    expect(/Block size: +(.*)/.exec(facts)?.[1]).toBe('4096');
  });

  itMakes('is made in milliseconds, not seconds', async () => {
    const times: number[] = [];
    for (let run = 0; run < 5; run += 1) {
      const from = performance.now();
      await createScratch({ path: at(`s${run}`), sizeMib: 8_192 });
      times.push(performance.now() - from);
    }
    // The quickest of five: a busy machine delays some.
    expect(Math.min(...times)).toBeLessThan(1_000);
  });

  it('is never made over a file that is there', async () => {
    await writeFile(at('s'), 'mine');
    expect(await createScratch({ path: at('s'), sizeMib: 64 }).catch(codeOf)).toBe('EEXIST');
    expect((await stat(at('s'))).size).toBe(4);
  });

  it('that cannot be made leaves nothing', async () => {
    expect(await createScratch({ path: at('s'), sizeMib: 0 }).catch(codeOf)).toBe('scratch_failed');
    expect(await readdir(at())).toEqual([]);
  });

  /** [size, journal] */
  const JOURNALS: readonly (readonly [number, string])[] = [
    [64, 'size=4'],
    [1_024, 'size=32'],
    [8_192, 'size=64'],
  ];
  it.each(JOURNALS)('of %s MiB has a journal of %s', (sizeMib, journal) => {
    expect(scratchOptions(sizeMib)).toContain(journal);
  });
});
