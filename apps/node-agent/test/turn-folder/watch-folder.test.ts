import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'vitest';
import { FolderWatch } from '../../src/turn-folder/watch-folder.ts';

const LONG_MS = 60_000;
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'firecrew-watch-'));
});
afterEach(async () => await rm(folder, { recursive: true, force: true }));

describe('the watch of a folder', () => {
  it('wakes its reader when a file in it grows', async () => {
    const watch = new FolderWatch(folder);
    const woken = watch.next(LONG_MS);
    await appendFile(join(folder, 'log'), 'a line\n');
    await woken;
    watch.close();
  });

  it('does not miss what changed while nobody waited', async () => {
    const watch = new FolderWatch(folder);
    const first = watch.next(LONG_MS);
    await appendFile(join(folder, 'log'), 'a line\n');
    await first;
    const second = watch.next(LONG_MS);
    await appendFile(join(folder, 'log'), 'another\n');
    await second;
    watch.close();
  });

  it('wakes by time alone where nothing changes, and where the folder is not there', async () => {
    for (const path of [folder, join(folder, 'missing')]) {
      const watch = new FolderWatch(path);
      await watch.next(5);
      watch.close();
    }
  });

  it('lets its reader go when it is closed', async () => {
    const watch = new FolderWatch(folder);
    const waiting = watch.next(LONG_MS);
    watch.close();
    await waiting;
  });
});
