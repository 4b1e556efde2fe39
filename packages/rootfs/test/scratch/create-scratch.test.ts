import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createScratch } from '../../src/index.ts';

const SBIN = { PATH: '/usr/sbin:/sbin:/usr/bin:/bin' };
const hasMke2fs = spawnSync('mke2fs', ['-V'], { env: SBIN }).error === undefined;
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-scratch-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe.skipIf(!hasMke2fs)('a scratch disk', () => {
  it('has the size asked for and takes almost nothing', async () => {
    const path = join(folder, 's');
    await createScratch({ path, sizeMib: 4096 });
    const { size, blocks, mode } = await stat(path);
    expect([size, mode & 0o777]).toEqual([4096 * 1024 * 1024, 0o600]);
    expect(blocks * 512).toBeLessThan(8 * 1024 * 1024);
    const label = spawnSync('e2label', [path], { env: SBIN });
    expect(String(label.stdout).trim()).toBe('fc-scratch');
  });

  it('is never made over a file that is there', async () => {
    const path = join(folder, 's');
    await createScratch({ path, sizeMib: 64 });
    await expect(createScratch({ path, sizeMib: 64 })).rejects.toMatchObject({ code: 'EEXIST' });
  });

  it('says what mke2fs said', async () => {
    await expect(createScratch({ path: join(folder, 's'), sizeMib: 0 })).rejects.toMatchObject({ code: 'scratch_failed' });
  });
});
