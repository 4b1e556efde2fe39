import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readDiskRoom, readMemoryKills } from '../../src/exec/read-shortages.ts';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fc-short-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('what a kernel killed for want of memory', () => {
  it.each([
    [3, 'nr_free_pages 1\noom_kill 3\nnuma_hit 7\n'],
    [0, 'oom_kill 0\n'],
    [undefined, 'oom_killed 3\n'],
    [undefined, 'oom_kill -1\n'],
    [undefined, 'oom_kill 99999999999999999\n'],
    [undefined, ''],
  ])('is %s', async (kills, text) => {
    const file = join(folder, 'vmstat');
    await writeFile(file, text);
    expect(await readMemoryKills(file)).toBe(kills);
  });

  it('is not known where it cannot be read', async () => {
    expect(await readMemoryKills(join(folder, 'none'))).toBeUndefined();
  });
});

describe('the room of disks', () => {
  it('is that of the fullest, and what has no bound or cannot be asked does not count', async () => {
    const room = await readDiskRoom([folder]);
    expect(room).toBeGreaterThan(0);
    expect(await readDiskRoom(['/proc', join(folder, 'none')])).toBeUndefined();
    expect(await readDiskRoom(['/proc', folder])).toBeGreaterThan(0);
  });
});
