import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from '@firecrew/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { ImageStore } from '../../src/index.ts';
import { addFiles, IMAGE_FACTS, KERNEL_FACTS } from '../support/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const at = temporaryFolder();
let store: ImageStore;
beforeEach(() => {
  store = new ImageStore(at('store'));
});

const rewrite = async (path: string, text: string): Promise<void> => {
  await chmod(path, 0o600);
  await writeFile(path, text);
};

describe('the image store', () => {
  it('keeps an artifact by the digest of its manifest, read-only, and gives it back open', async () => {
    const { id, folder, sizeBytes, manifest } = await addFiles(store, { 'root.squashfs': 'bytes' });
    expect(id).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(folder).toBe(at('store', 'images', id.slice(7)));
    expect(sizeBytes).toBe(5);
    expect(manifest.files).toEqual([
      { name: 'root.squashfs', sizeBytes: 5, sha256: '277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9' },
    ]);
    for (const name of await readdir(folder)) expect((await stat(join(folder, name))).mode & 0o777, name).toBe(0o444);
    expect((await stat(folder)).mode & 0o777).toBe(0o755);
    const open = await store.openVerified(id, 'image');
    const file = open.files.get('root.squashfs');
    await rm(folder, { recursive: true });
    expect((await file?.handle.readFile())?.toString()).toBe('bytes');
    await open.close();
  });

  it('is read by other accounts, whatever the mask of the process that made it', async () => {
    const mask = process.umask(0o077);
    const { folder } = await addFiles(store, { bzImage: 'x', 'modules/virtio.ko': 'y' }, KERNEL_FACTS).finally(() => process.umask(mask));
    const modes = async (...names: string[]) => (await stat(join(...names))).mode & 0o777;
    expect([await modes(store.root), await modes(store.root, 'images'), await modes(folder), await modes(folder, 'modules')]).toEqual(
      Array.from({ length: 4 }, () => 0o755),
    );
    expect([await modes(folder, 'manifest.json'), await modes(folder, 'bzImage'), await modes(folder, 'modules/virtio.ko')]).toEqual(
      Array.from({ length: 3 }, () => 0o444),
    );
  });

  it('gives the same id for the same content, whoever makes it, and keeps it once', async () => {
    const one = await addFiles(store, { a: '1', b: '2' });
    const two = await addFiles(store, { b: '2', a: '1' }, { ...IMAGE_FACTS, environment: { A: '1', B: '2' } });
    const elsewhere = await addFiles(new ImageStore(at('other')), { a: '1', b: '2' });
    expect([two.id, elsewhere.id]).toEqual([one.id, one.id]);
    expect((await store.list()).artifacts).toHaveLength(1);
    expect((await addFiles(store, { a: '1', b: '3' })).id).not.toBe(one.id);
    expect((await addFiles(store, { a: '1', b: '2' }, { ...IMAGE_FACTS, user: 'root' })).id).not.toBe(one.id);
  });

  it('keeps one of many that are made at once', async () => {
    const made = await Promise.all(Array.from({ length: 8 }, async () => await addFiles(store, { a: '1' })));
    expect(new Set(made.map(({ id }) => id)).size).toBe(1);
    expect((await readdir(at('store'))).sort()).toEqual(['images']);
  });

  it('leaves nothing of a builder that fails', async () => {
    const failing = store.add(async ({ target, work }) => {
      await writeFile(join(target, 'a'), 'x');
      await writeFile(join(work, 'b'), 'x');
      throw new Error('out of room');
    });
    await expect(failing).rejects.toThrow('out of room');
    expect(await readdir(at('store'))).toEqual(['images']);
    expect(await readdir(at('store', 'images'))).toEqual([]);
  });

  it('refuses what is no plain file from a builder', async () => {
    const linked = store.add(async ({ target }) => {
      await symlink('/etc/passwd', join(target, 'a'));
      return IMAGE_FACTS;
    });
    expect(await linked.catch(codeOf)).toBe('image_store_failed');
  });

  /** [what was done to the artifact] */
  const TAMPERINGS: readonly (readonly [string, (folder: string) => Promise<unknown>])[] = [
    ['a file with another content of the same size', (folder) => rewrite(join(folder, 'a'), 'X')],
    ['a file that is longer', (folder) => rewrite(join(folder, 'a'), '1 and more')],
    ['a file that is empty', (folder) => rewrite(join(folder, 'a'), '')],
    ['a file that is gone', (folder) => rm(join(folder, 'a'))],
    [
      'a file that became a link to its content',
      async (folder) => {
        await rename(join(folder, 'a'), at('moved'));
        await symlink(at('moved'), join(folder, 'a'));
      },
    ],
    [
      'a file that became a folder',
      async (folder) => {
        await rm(join(folder, 'a'));
        await mkdir(join(folder, 'a'));
      },
    ],
    [
      'a manifest with another user',
      async (folder) => {
        const path = join(folder, 'manifest.json');
        await rewrite(path, (await readFile(path, 'utf8')).replace('"user":""', '"user":"0"'));
      },
    ],
    ['a manifest that is gone', (folder) => rm(join(folder, 'manifest.json'))],
  ];
  it.each(TAMPERINGS)('never opens an artifact with %s', async (_what, tamper) => {
    const { id, folder } = await addFiles(store, { a: '1', b: '2' });
    await tamper(folder);
    expect(await store.openVerified(id).catch(codeOf)).toBe('image_digest_wrong');
  });

  it('mends a damaged artifact when the same is made again', async () => {
    const { id, folder } = await addFiles(store, { a: '1' });
    await rewrite(join(folder, 'a'), 'X');
    expect((await addFiles(store, { a: '1' })).id).toBe(id);
    await (await store.openVerified(id)).close();
  });

  it('lists what it holds, with damaged ones apart and foreign names untouched', async () => {
    const good = await addFiles(store, { a: '1' });
    const bad = await addFiles(store, { a: '2' });
    await rewrite(join(bad.folder, 'manifest.json'), '{}');
    await mkdir(at('store', 'images', 'notes'));
    const { artifacts, damaged } = await store.list();
    expect(artifacts.map(({ id }) => id)).toEqual([good.id]);
    expect(damaged).toMatchObject([{ id: bad.id, error: { code: 'image_digest_wrong' } }]);
    expect((await new ImageStore(at('none')).list()).artifacts).toEqual([]);
  });

  it('never calls a store empty that it cannot read', async () => {
    await writeFile(at('file'), '');
    expect(await new ImageStore(at('file')).list().catch(codeOf)).toBe('image_store_failed');
  });

  it('finds an artifact by its id or the end of it', async () => {
    const { id } = await addFiles(store, { a: '1' });
    for (const wanted of [id, id.slice(7), id.slice(-5)]) expect((await store.find(wanted)).id).toBe(id);
    for (const wanted of ['', 'ff', '../..', `sha256:${'0'.repeat(64)}`, 'sha256:', 'zzzz'])
      expect(await store.find(wanted).catch(codeOf), wanted).toBe('image_unknown');
  });

  it('refuses an artifact of another kind than is wanted', async () => {
    const { id } = await addFiles(store, { bzImage: '1', 'modules/virtio.ko': '2' }, KERNEL_FACTS);
    expect(await store.openVerified(id, 'image').catch(codeOf)).toBe('image_kind_wrong');
    const open = await store.openVerified(id, 'kernel');
    expect([...open.files.keys()]).toEqual(['bzImage', 'modules/virtio.ko']);
    await open.close();
  });

  it('removes an artifact once, and only by its id', async () => {
    const { id } = await addFiles(store, { a: '1' });
    await store.remove(id);
    expect((await store.list()).artifacts).toEqual([]);
    expect(await store.remove(id).catch(codeOf)).toBe('image_unknown');
    expect(await store.remove('sha256:../../..' as typeof id).catch(codeOf)).toBe('image_unknown');
    expect(await readdir(at('store'))).toEqual(['images']);
  });

  it('names folders of makers that crashed once they are old', async () => {
    const now = Date.now();
    await addFiles(store, { a: '1' });
    for (const name of ['making-old', 'making-new', 'mine']) await mkdir(at('store', name));
    await utimes(at('store', 'making-old'), 1, 1);
    await utimes(at('store', 'mine'), 1, 1);
    expect(await store.listAbandoned(now, 60_000)).toEqual(['making-old']);
    await store.removeAbandoned('making-old');
    await store.removeAbandoned('mine');
    expect((await readdir(at('store'))).sort()).toEqual(['images', 'making-new', 'mine']);
  });
});
