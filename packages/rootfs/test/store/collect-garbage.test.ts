import { chmod, mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { ABANDONED_AFTER_MS, COLLECTION_GRACE_MS, collectGarbage, ImageStore } from '../../src/index.ts';
import { addFiles } from '../support/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const at = temporaryFolder();
let store: ImageStore;
beforeEach(() => {
  store = new ImageStore(at('store'));
});

describe('the collector of a store', () => {
  it('removes in a later pass what stayed unused, and only that', async () => {
    const used = await addFiles(store, { a: 'used' });
    const unused = await addFiles(store, { a: 'unused' });
    const inUse = new Set([used.id]);
    const first = await collectGarbage(store, inUse, { nowMs: 1_000, graceMs: 500 });
    expect(first).toMatchObject({ removed: [], waiting: [unused.id], failed: [] });
    expect(await collectGarbage(store, inUse, { nowMs: 1_499, graceMs: 500 })).toMatchObject({ removed: [], waiting: [unused.id] });
    expect(await collectGarbage(store, inUse, { nowMs: 1_500, graceMs: 500 })).toMatchObject({ removed: [unused.id], waiting: [] });
    expect((await store.list()).artifacts.map(({ id }) => id)).toEqual([used.id]);
  });

  it('lets go of a mark when the artifact was used in between', async () => {
    const { id } = await addFiles(store, { a: '1' });
    await collectGarbage(store, new Set(), { nowMs: 1_000, graceMs: 500 });
    await collectGarbage(store, new Set([id]), { nowMs: 2_000, graceMs: 500 });
    expect(await collectGarbage(store, new Set(), { nowMs: 3_000, graceMs: 500 })).toMatchObject({ removed: [], waiting: [id] });
  });

  it('tells what is damaged and leaves it, and starts anew where its own memory is damaged', async () => {
    const { id, folder } = await addFiles(store, { a: '1' });
    await chmod(join(folder, 'manifest.json'), 0o600);
    await writeFile(join(folder, 'manifest.json'), '{');
    await writeFile(at('store', 'unused.json'), 'no JSON');
    await mkdir(at('store', 'images', 'mine'));
    const pass = await collectGarbage(store, new Set(), { nowMs: 1_000, graceMs: 0 });
    expect(pass).toMatchObject({ removed: [], failed: [{ id, error: { code: 'image_digest_wrong' } }] });
    expect((await readdir(at('store', 'images'))).sort()).toEqual([id.slice(7), 'mine']);
  });

  it('takes away what a crashed maker left, once it is old', async () => {
    await mkdir(at('store', 'making-x', 'target'), { recursive: true });
    for (const path of [at('store', 'making-x', 'target'), at('store', 'making-x')]) await utimes(path, 1_000, 1_000);
    const soon = { nowMs: 1_000_000 + ABANDONED_AFTER_MS };
    expect((await collectGarbage(store, new Set(), soon)).abandoned).toEqual([]);
    expect((await collectGarbage(store, new Set(), { nowMs: soon.nowMs + 1 })).abandoned).toEqual(['making-x']);
    expect(await readdir(at('store'))).toEqual(['unused.json']);
  });

  it('has these time limits', () => {
    expect([COLLECTION_GRACE_MS, ABANDONED_AFTER_MS]).toEqual([86_400_000, 86_400_000]);
  });
});
