import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { CodedError, codeOf } from '@firecrew/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_IMAGE_LIMITS } from '../../src/limits.ts';
import { type ScannedEntry, scanTar } from '../../src/tar/scan-tar.ts';
import { entryBlocks, makeTar, type RawEntry, sourceOf } from '../support/make-tar.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { itWith, runTool } from '../support/tools.ts';

async function scan(bytes: Buffer, limits = DEFAULT_IMAGE_LIMITS): Promise<ScannedEntry[]> {
  const found: ScannedEntry[] = [];
  for await (const entry of scanTar(sourceOf(bytes), limits)) found.push(entry);
  return found;
}

async function codeOfScan(bytes: Buffer, limits = DEFAULT_IMAGE_LIMITS): Promise<string | undefined> {
  return await scan(bytes, limits).then(
    () => undefined,
    (error: unknown) => codeOf(error),
  );
}

describe('the archive of a layer', () => {
  it('gives owners, modes, times, devices and the place of contents', async () => {
    const [file, device] = await scan(
      makeTar([
        { name: 'a', content: 'hello', mode: 0o4751, uid: 1000, gid: 1001, mtime: 7 },
        { name: 'null', type: '3', major: 1, minor: 3, mode: 0o666 },
      ]),
    );
    expect(file).toMatchObject({ type: 'file', path: 'a', mode: 0o4751, uid: 1000, gid: 1001, mtime: 7, size: 5, offset: 512 });
    expect(device).toMatchObject({ type: 'character-device', deviceMajor: 1, deviceMinor: 3, size: 0 });
  });

  it('takes names, links, owners, times and kept attributes from pax headers, as bytes', async () => {
    const capability = Buffer.from('0100000200200000000000000000000000000000', 'hex');
    const [entry] = await scan(
      makeTar([
        {
          name: 'short',
          pax: {
            path: Buffer.from('caf\xe9', 'latin1'),
            uid: '3000000000',
            gid: '7',
            mtime: '-3.5',
            'SCHILY.xattr.security.capability': capability,
            'SCHILY.xattr.user.note': 'x\0y',
            'SCHILY.xattr.user.overlay.opaque': 'y',
            'SCHILY.xattr.trusted.overlay.opaque': 'y',
            'SCHILY.xattr.security.selinux': 'label',
          },
        },
      ]),
    );
    expect(entry).toMatchObject({ path: 'caf\xe9', uid: 3_000_000_000, gid: 7, mtime: 0 });
    expect([...(entry?.xattrs ?? [])]).toEqual([
      ['security.capability', capability],
      ['user.note', Buffer.from('x\0y')],
    ]);
  });

  /** [what, the entries, what the first of them is] */
  const FORMS: readonly (readonly [string, readonly RawEntry[], Partial<ScannedEntry>])[] = [
    ['a folder of the oldest form', [{ name: 'd/', magic: '\0'.repeat(8), type: '\0' }], { type: 'directory', path: 'd/' }],
    ['a name in two fields', [{ name: 'b', raw: { 345: Buffer.from('a') } }], { path: 'a/b' }],
    ['a base-256 owner', [{ name: 'a', raw: { 108: Buffer.from('800000000000ffff', 'hex') } }], { uid: 0xffff }],
    ['a negative base-256 time', [{ name: 'a', raw: { 136: Buffer.from('ffffffffffffffffffffffff', 'hex') } }], { mtime: 0 }],
    ['an empty owner', [{ name: 'a', raw: { 108: Buffer.alloc(8) } }], { uid: 0 }],
    ['an empty pax value', [{ name: 'a', pax: { path: '' } }], { path: 'a' }],
    ['a comment for all', [{ name: 'g', type: 'g', content: '16 comment=okay\n' }, { name: 'a' }], { path: 'a' }],
    [
      'a GNU long name and link',
      [
        { name: 'L', type: 'L', content: `${'n'.repeat(300)}\0` },
        { name: 'K', type: 'K', content: 'target\0' },
        { name: 'x', type: '2', link: 'y' },
      ],
      { path: 'n'.repeat(300), linkName: 'target', type: 'symbolic-link' },
    ],
  ];
  it.each(FORMS)('reads %s', async (_what, entries, wanted) => {
    expect((await scan(makeTar(entries)))[0]).toMatchObject(wanted);
  });

  const plain: RawEntry = { name: 'a', content: 'x' };
  const cut = (bytes: Buffer, at: number): Buffer => bytes.subarray(0, at);
  /** [what, the bytes, the code] */
  const REFUSED: readonly (readonly [string, Buffer, string])[] = [
    ['nothing at all', Buffer.alloc(0), 'layer_cut'],
    ['a cut header', cut(makeTar([plain]), 300), 'layer_cut'],
    ['a cut content', cut(makeTar([{ name: 'a', content: 'x'.repeat(2000) }]), 1024), 'layer_cut'],
    ['no end mark', cut(makeTar([plain]), 1024), 'layer_cut'],
    ['half an end mark', cut(makeTar([plain]), 1536), 'layer_cut'],
    ['an entry behind a zero block', Buffer.concat([makeTar([]).subarray(0, 512), makeTar([plain])]), 'layer_malformed'],
    ['content behind the end', Buffer.concat([makeTar([plain]), Buffer.from('more'), Buffer.alloc(508)]), 'layer_malformed'],
    ['a wrong checksum', Buffer.from(makeTar([plain]).map((byte, at) => (at === 0 ? byte + 1 : byte))), 'layer_malformed'],
    ['an unknown form', makeTar([{ name: 'a', magic: 'ustarX00' }]), 'layer_malformed'],
    ['a size in letters', makeTar([{ name: 'a', raw: { 124: Buffer.from('0000000000z\0') } }]), 'layer_malformed'],
    ['a negative size', makeTar([{ name: 'a', raw: { 124: Buffer.from(`${'ff'.repeat(11)}f0`, 'hex') } }]), 'entry_refused'],
    ['a size past every number', makeTar([{ name: 'a', raw: { 124: Buffer.from('807fffffffffffffffffffff', 'hex') } }]), 'layer_malformed'],
    ['a size past the end', makeTar([{ name: 'a', size: 1_000_000 }]), 'layer_cut'],
    ['two sizes', makeTar([{ name: 'a', size: 0, pax: { size: '512' } }]), 'layer_malformed'],
    ['a negative pax size', makeTar([{ name: 'a', pax: { size: '-512' } }]), 'layer_malformed'],
    ['a record of no length', makeTar([{ name: 'x', type: 'x', content: '0 path=a\n' }, plain]), 'layer_malformed'],
    ['a record that is longer than its header', makeTar([{ name: 'x', type: 'x', content: '99 path=a\n' }, plain]), 'layer_malformed'],
    ['a record twice', makeTar([{ name: 'x', type: 'x', content: '9 path=a\n9 path=b\n' }, plain]), 'layer_malformed'],
    [
      'two dialects',
      makeTar([
        { name: 'L', type: 'L', content: 'n\0' },
        { ...plain, pax: { path: 'b' } },
      ]),
      'layer_malformed',
    ],
    ['a path for all', makeTar([{ name: 'g', type: 'g', content: '10 path=ab\n' }, plain]), 'layer_malformed'],
    ['an extension of nothing', makeTar([{ name: 'x', type: 'x', content: '9 path=a\n' }]), 'layer_malformed'],
    ['a sparse file', makeTar([{ ...plain, pax: { 'GNU.sparse.size': '1' } }]), 'entry_refused'],
    ['an old sparse file', makeTar([{ ...plain, type: 'S' }]), 'entry_refused'],
    ['a part of a volume', makeTar([{ ...plain, type: 'M' }]), 'entry_refused'],
    ['a link with content', makeTar([{ name: 'a', type: '2', link: 'b', content: 'x' }]), 'entry_refused'],
    ['a hard link to nothing', makeTar([{ name: 'a', type: '1' }]), 'entry_refused'],
    ['an owner past all', makeTar([{ ...plain, pax: { uid: '4294967295' } }]), 'entry_refused'],
  ];
  it.each(REFUSED)('refuses %s', async (_what, bytes, code) => {
    expect(await codeOfScan(bytes)).toBe(code);
  });

  it('bounds entries and extension headers before it reads them', async () => {
    const limits = { ...DEFAULT_IMAGE_LIMITS, maxEntries: 2, maxMetaBytes: 600 };
    expect(await codeOfScan(makeTar(Array.from({ length: 5 }, (_, at) => ({ name: `${at}` }))), limits)).toBe('image_too_large');
    const huge = { name: 'x', type: 'x', size: 1_000_000_000 };
    expect(await codeOfScan(makeTar([huge]), limits)).toBe('image_too_large');
    const endless = Array.from({ length: 5 }, () => ({ name: 'g', type: 'g', content: '16 comment=okay\n' }));
    expect(await codeOfScan(makeTar([...endless, { name: 'a' }]), limits)).toBe('image_too_large');
  });

  it('ends with entries or a code for any bytes', async () => {
    const seed = Buffer.concat([
      ...entryBlocks({ name: 'x'.repeat(50), content: 'abc', pax: { path: 'y' } }),
      makeTar([{ name: 'z', type: '5' }]),
    ]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(seed.length - 1), fc.nat(255)), { minLength: 1, maxLength: 8 }), async (changes) => {
        const bytes = Buffer.from(seed);
        for (const [at, value] of changes) bytes[at] = value;
        const result = await scan(bytes).catch((error: unknown) => error);
        expect(Array.isArray(result) || result instanceof CodedError).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  const cases = new URL('../../../../tests/cases/tar/', import.meta.url);
  const archives = readdirSync(cases).filter((name) => name.endsWith('.tar'));
  it(`ends with entries or a code for ${archives.length} hostile archives`, async () => {
    for (const name of archives) {
      const result = await scan(readFileSync(new URL(name, cases))).catch((error: unknown) => error);
      expect(Array.isArray(result) || result instanceof CodedError, name).toBe(true);
    }
    expect(archives.length).toBeGreaterThan(50);
  });

  const at = temporaryFolder();
  describe.each(['v7', 'ustar', 'gnu', 'oldgnu', 'pax'])('written by GNU tar as %s', (format) => {
    itWith('tar')('is read as it lists it', async () => {
      await mkdir(at('tree', 'folder'), { recursive: true });
      await writeFile(at('tree', 'folder', 'file'), 'content\n');
      await symlink('../elsewhere', at('tree', 'folder', 'link'));
      if (format !== 'v7' && format !== 'ustar') await writeFile(at('tree', 'n'.repeat(180)), 'long\n');
      const bytes = runTool('tar', ['--create', `--format=${format}`, '--directory', at('tree'), '.']);
      const listed = runTool('tar', ['--list'], { input: bytes }).toString().trim().split('\n').sort();
      const entries = await scan(bytes);
      expect(entries.map(({ path }) => path).sort()).toEqual(listed);
      const file = entries.find(({ path }) => path.endsWith('/file'));
      expect(bytes.subarray(file?.offset, (file?.offset ?? 0) + 8).toString()).toBe('content\n');
      expect(entries.find(({ path }) => path.endsWith('/link'))).toMatchObject({ type: 'symbolic-link', linkName: '../elsewhere' });
    });
  });
});
