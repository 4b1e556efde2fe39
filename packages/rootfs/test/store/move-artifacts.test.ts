import { readFile, writeFile } from 'node:fs/promises';
import { codeOf } from '@firecrew/base';
import { beforeEach, describe, expect, it } from 'vitest';
import { exportArtifact, ImageStore, importArtifact } from '../../src/index.ts';
import { makeTar, type RawEntry } from '../support/make-tar.ts';
import { addFiles, KERNEL_FACTS } from '../support/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const at = temporaryFolder();
let store: ImageStore;
beforeEach(() => {
  store = new ImageStore(at('store'));
});

async function exported(id: `sha256:${string}` | string): Promise<Buffer> {
  const open = await store.openVerified(id);
  const parts: Buffer[] = [];
  for await (const part of exportArtifact(open)) parts.push(part);
  await open.close();
  return Buffer.concat(parts);
}

describe('an artifact on its way', () => {
  it('arrives in another store under the same id', async () => {
    const { id } = await addFiles(store, { bzImage: 'x'.repeat(5_000), 'modules/virtio.ko': 'y' }, KERNEL_FACTS);
    await writeFile(at('file.tar'), await exported(id));
    const other = new ImageStore(at('other'));
    expect((await importArtifact(other, at('file.tar'), id)).id).toBe(id);
    const open = await other.openVerified(id, 'kernel');
    expect((await readFile(open.files.get('modules/virtio.ko')?.path ?? '')).toString()).toBe('y');
    await open.close();
    expect((await importArtifact(other, at('file.tar'))).id).toBe(id);
    expect(await exported(id)).toEqual(await readFile(at('file.tar')));
  });

  const manifest = async (files: Readonly<Record<string, string>>): Promise<string> =>
    (await addFiles(store, files)).manifestBytes.toString();
  const files = { a: 'one', b: 'two' };
  const plain: readonly RawEntry[] = [
    { name: 'a', content: 'one' },
    { name: 'b', content: 'two' },
  ];
  /** [what, the entries behind the manifest, the manifest, the code] */
  const REFUSED: readonly (readonly [string, readonly RawEntry[], (text: string) => string, string])[] = [
    ['a file with another content', [{ name: 'a', content: 'eno' }, plain[1] ?? { name: '' }], (text) => text, 'image_digest_wrong'],
    ['a file of another size', [{ name: 'a', content: 'onee' }, plain[1] ?? { name: '' }], (text) => text, 'import_malformed'],
    ['a file too few', plain.slice(0, 1), (text) => text, 'import_malformed'],
    ['a file too many', [...plain, { name: 'c', content: 'x' }], (text) => text, 'import_malformed'],
    ['files in another order', [...plain].reverse(), (text) => text, 'import_malformed'],
    [
      'a link in place of a file',
      [{ name: 'a', type: '2', link: '/etc/passwd' }, plain[1] ?? { name: '' }],
      (text) => text,
      'import_malformed',
    ],
    ['a second manifest', [...plain, { name: 'manifest.json', content: '{}' }], (text) => text, 'import_malformed'],
    ['a name that leads out', plain, (text) => text.replace('"name":"a"', '"name":"../a"'), 'manifest_malformed'],
    ['an absolute name', plain, (text) => text.replace('"name":"a"', '"name":"/a"'), 'manifest_malformed'],
    ['a name twice', plain, (text) => text.replace('"name":"b"', '"name":"a"'), 'manifest_malformed'],
    ['a manifest as a file of itself', plain, (text) => text.replace('"name":"b"', '"name":"manifest.json"'), 'manifest_malformed'],
    ['an unknown field', plain, (text) => text.replace('{', '{"more":1,'), 'manifest_malformed'],
    ['another version of manifests', plain, (text) => text.replace('"manifest":1', '"manifest":2'), 'manifest_malformed'],
    ['a manifest that is no JSON', plain, () => 'text', 'manifest_malformed'],
  ];
  it.each(REFUSED)('with %s is refused', async (_what, entries, edit, code) => {
    const content = edit(await manifest(files));
    const other = new ImageStore(at('other'));
    await writeFile(at('file.tar'), makeTar([{ name: 'manifest.json', content }, ...entries]));
    expect(await importArtifact(other, at('file.tar')).catch(codeOf)).toBe(code);
    expect((await other.list()).artifacts).toEqual([]);
  });

  it('that is another than the expected one, is cut, or has no manifest, is refused', async () => {
    const { id } = await addFiles(store, files);
    const bytes = await exported(id);
    await writeFile(at('file.tar'), bytes);
    expect(await importArtifact(store, at('file.tar'), `sha256:${'0'.repeat(64)}`).catch(codeOf)).toBe('image_digest_wrong');
    await writeFile(at('file.tar'), bytes.subarray(0, bytes.length - 1_000));
    expect(await importArtifact(store, at('file.tar')).catch(codeOf)).toBe('layer_cut');
    await writeFile(at('file.tar'), makeTar([{ name: 'a', content: 'one' }]));
    expect(await importArtifact(store, at('file.tar')).catch(codeOf)).toBe('import_malformed');
    await writeFile(at('file.tar'), makeTar([]));
    expect(await importArtifact(store, at('file.tar')).catch(codeOf)).toBe('import_malformed');
  });

  it('is never exported when it was changed meanwhile', async () => {
    const { id } = await addFiles(store, files);
    const open = await store.openVerified(id);
    await open.files.get('a')?.handle.close();
    await expect(
      (async () => {
        for await (const _part of exportArtifact(open));
      })(),
    ).rejects.toThrow();
    await open.files.get('b')?.handle.close();
  });
});
