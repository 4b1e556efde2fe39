import { chmodSync, linkSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { codeOf } from '@firecrew/base';
import { describe, expect } from 'vitest';
import { FIXED_TIME_SECONDS } from '../../src/index.ts';
import { build, readSquashfs } from '../support/build.ts';
import { archiveFiles, json, layoutFiles, savedFiles, sha256, type TestImage, writeFiles } from '../support/make-image.ts';
import { makeTar } from '../support/make-tar.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { itWith } from '../support/tools.ts';

const at = temporaryFolder();
const it = itWith('tar2sqfs', 'tar');

const CAPABILITY = Buffer.from('0100000200200000000000000000000000000000', 'hex');

const IMAGE: TestImage = {
  config: { Env: ['PATH=/usr/bin', 'A=b=c'], User: '1000:1000', WorkingDir: '/srv' },
  layers: [
    {
      compression: 'gzip',
      entries: [
        { name: 'bin/', type: '5', mode: 0o755 },
        { name: 'bin/su', content: 'root only', mode: 0o4755, pax: { 'SCHILY.xattr.security.capability': CAPABILITY } },
        { name: 'bin/gone', content: 'hidden later' },
        { name: 'dev/null', type: '3', major: 1, minor: 3, mode: 0o666 },
        { name: 'srv/', type: '5', uid: 1000, gid: 1000, mode: 0o700 },
      ],
    },
    {
      compression: 'zstd',
      entries: [
        { name: 'bin/.wh.gone' },
        { name: 'bin/sudo', type: '1', link: 'bin/su' },
        { name: 'srv/data', content: 'x'.repeat(300_000), uid: 1000, gid: 1000, mode: 0o600, mtime: 1_700_000_001 },
        { name: 'odd', pax: { path: Buffer.from('odd-\xff', 'latin1') }, content: 'bytes' },
      ],
    },
    { compression: 'none', entries: [{ name: 'link', type: '2', link: '/etc/../../x' }] },
  ],
};

describe('an image', () => {
  it('from an OCI layout holds the merged layers with owners, modes, devices, times and attributes', async () => {
    const path = writeFiles(at('layout'), layoutFiles([IMAGE]));
    const { facts, file } = await build(at(), { source: { kind: 'oci-layout', path } });
    expect(facts).toMatchObject({
      source: { kind: 'oci-layout', reference: null },
      environment: { PATH: '/usr/bin', A: 'b=c' },
      user: '1000:1000',
      workingDirectory: '/srv',
      entryCount: 10,
      times: { kind: 'kept' },
    });
    const found = await readSquashfs(file);
    expect([...found.keys()].sort()).toEqual(['', 'bin', 'bin/su', 'bin/sudo', 'dev', 'dev/null', 'link', 'odd-\xff', 'srv', 'srv/data']);
    expect(found.get('bin/su')).toMatchObject({ mode: 0o4755, uid: 0, text: 'root only' });
    expect(found.get('bin/su')?.xattrs.get('security.capability')).toEqual(CAPABILITY);
    expect(found.get('bin/sudo')?.type).toBe('hard-link');
    expect(found.get('dev/null')).toMatchObject({ type: 'character-device', deviceMajor: 1, deviceMinor: 3, mode: 0o666 });
    expect(found.get('srv/data')).toMatchObject({ uid: 1000, gid: 1000, mode: 0o600, mtime: 1_700_000_001, size: 300_000 });
    expect(found.get('link')).toMatchObject({ type: 'symbolic-link', linkName: '/etc/../../x' });
  });

  it('is the same from a layout, from an archive of it, and from a saved archive', async () => {
    const path = writeFiles(at('layout'), layoutFiles([IMAGE]));
    const { digest } = await build(at(), { source: { kind: 'oci-layout', path } });
    writeFileSync(at('oci.tar'), archiveFiles(layoutFiles([IMAGE])));
    writeFileSync(at('saved.tar'), archiveFiles(savedFiles(IMAGE)));
    const oci = await build(at(), { source: { kind: 'docker-archive', path: at('oci.tar') } });
    const saved = await build(at(), { source: { kind: 'docker-archive', path: at('saved.tar') } });
    expect([oci.digest, saved.digest]).toEqual([digest, digest]);
    expect(saved.facts.environment).toEqual({ PATH: '/usr/bin', A: 'b=c' });
  });

  it('from a saved archive whose layers are links to one another', async () => {
    const files = savedFiles({ layers: [{ entries: [{ name: 'a', content: 'x' }] }, { entries: [{ name: 'a', content: 'x' }] }] });
    files.delete('layer1/layer.tar');
    const entries = [...files].map(([name, content]) => ({ name, content }));
    writeFileSync(at('s.tar'), makeTar([...entries, { name: 'layer1/layer.tar', type: '2', link: '../layer0/layer.tar' }]));
    const { facts } = await build(at(), { source: { kind: 'docker-archive', path: at('s.tar') } });
    expect(facts.entryCount).toBe(2);
  });

  it('from a folder is the same wherever and whenever that was made', async () => {
    for (const [name, time] of [
      ['one', 1],
      ['two', 2_000_000_000],
    ] as const) {
      mkdirSync(at(name, 'sub'), { recursive: true });
      writeFileSync(at(name, 'sub', 'file'), 'content');
      linkSync(at(name, 'sub', 'file'), at(name, 'second'));
      symlinkSync('/nowhere', at(name, 'link'));
      writeFileSync(at(name, '.wh.kept'), 'a name like others');
      chmodSync(at(name, 'sub', 'file'), 0o755);
      utimesSync(at(name, 'sub', 'file'), time, time);
    }
    const one = await build(at(), { source: { kind: 'directory', path: at('one'), owners: 'root' } });
    const two = await build(at(), { source: { kind: 'directory', path: at('two'), owners: 'root' } });
    expect(two.digest).toBe(one.digest);
    expect(one.facts).toEqual(two.facts);
    expect(one.facts.times).toEqual({ kind: 'fixed', seconds: FIXED_TIME_SECONDS });
    const found = await readSquashfs(one.file);
    expect([...found.keys()].sort()).toEqual(['', '.wh.kept', 'link', 'second', 'sub', 'sub/file']);
    expect(found.get('second')).toMatchObject({ mode: 0o755, mtime: FIXED_TIME_SECONDS, uid: 0 });
    writeFileSync(at('two', 'sub', 'file'), 'CONTENT');
    expect((await build(at(), { source: { kind: 'directory', path: at('two'), owners: 'root' } })).digest).not.toBe(one.digest);
  });

  it('takes links and variables that a recipe adds', async () => {
    mkdirSync(at('d'));
    const options = { links: { '/usr/local/bin/x': '/opt/x' }, environment: { LANG: 'C.UTF-8' } };
    const { facts, file } = await build(at(), { source: { kind: 'directory', path: at('d'), owners: 'root' }, ...options });
    expect(facts.environment).toEqual({ LANG: 'C.UTF-8' });
    expect((await readSquashfs(file)).get('usr/local/bin/x')).toMatchObject({ type: 'symbolic-link', linkName: '/opt/x' });
  });

  it('of the wanted name and processor is chosen', async () => {
    const one = (name: string, architecture: string, content: string): TestImage => ({
      name,
      architecture,
      layers: [{ entries: [{ name: 'a', content }] }],
    });
    const images = [
      one('r/t:1', 'amd64', '1'),
      one('r/t:1', 'arm64', '2'),
      one('r/t:2', 'amd64', '3'),
      { ...one('w', 'amd64', '4'), os: 'windows' },
    ];
    const path = writeFiles(at('layout'), layoutFiles(images));
    const text = async (reference: string | undefined): Promise<string | undefined> => {
      const { file } = await build(at(), { source: { kind: 'oci-layout', path, reference } });
      return (await readSquashfs(file)).get('a')?.text;
    };
    expect(await text('r/t:1')).toBe('1');
    expect(await text('t:2')).toBe('3');
    expect(await text('2')).toBe('3');
    expect(await text(undefined).catch(codeOf)).toBe('image_ambiguous');
    expect(await text('r/t:3').catch(codeOf)).toBe('image_not_found');
    expect(await text('w').catch(codeOf)).toBe('image_not_found');
  });

  it('is read from layers of several compressed frames, with frames to skip between them', async () => {
    const tar = makeTar([{ name: 'a', content: 'x'.repeat(2_000) }]);
    const halves = [tar.subarray(0, 700), tar.subarray(700)];
    const skippable = Buffer.concat([Buffer.from('502a4d1805000000', 'hex'), Buffer.from('12345')]);
    const blobs = {
      '+gzip': Buffer.concat(halves.map((half) => gzipSync(half))),
      '+zstd': Buffer.concat(halves.flatMap((half) => [skippable, zstdCompressSync(half)])),
    };
    for (const [suffix, blob] of Object.entries(blobs)) {
      const path = writeFiles(at(`layout${suffix}`), withLayer(blob, `application/vnd.oci.image.layer.v1.tar${suffix}`, tar));
      expect((await build(at(), { source: { kind: 'oci-layout', path } })).facts.entryCount, suffix).toBe(2);
    }
  });
});

/** A layout of one layer whose blob is given. */
function withLayer(blob: Buffer, mediaType: string, tar: Buffer): Map<string, Buffer> {
  const config = json({ os: 'linux', architecture: 'amd64', rootfs: { type: 'layers', diff_ids: [`sha256:${sha256(tar)}`] } });
  const layer = { mediaType, digest: `sha256:${sha256(blob)}`, size: blob.length };
  const manifest = json({
    schemaVersion: 2,
    config: { mediaType: 'application/vnd.oci.image.config.v1+json', digest: `sha256:${sha256(config)}`, size: config.length },
    layers: [layer],
  });
  const entry = { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest: `sha256:${sha256(manifest)}`, size: manifest.length };
  return new Map([
    ['oci-layout', json({ imageLayoutVersion: '1.0.0' })],
    ['index.json', json({ schemaVersion: 2, manifests: [entry] })],
    ...[config, manifest, blob].map((bytes) => [`blobs/sha256/${sha256(bytes)}`, bytes] as const),
  ]);
}

describe('a hostile image', () => {
  const plain: TestImage = { layers: [{ entries: [{ name: 'a', content: 'x' }] }] };
  type Files = Map<string, Buffer>;
  const blobOf = (files: Files, part: string): string =>
    [...files.keys()].find((name) => name.startsWith('blobs/') && files.get(name)?.includes(part)) ?? '';
  const layerOf = (files: Files): string =>
    [...files.keys()].find((name) => files.get(name)?.subarray(0, 2).toString('hex') === '1f8b') ?? '';
  const changed = (change: (files: Files) => void, image = plain): Files => {
    const files = layoutFiles([image]);
    change(files);
    return files;
  };
  const edited = (name: string, edit: (text: string) => string): Files =>
    changed((files) => files.set(name, Buffer.from(edit(files.get(name)?.toString() ?? ''))));

  /** [what, the files of its layout, the code] */
  const REFUSED: readonly (readonly [string, Files, string])[] = [
    [
      'a layer with another content',
      changed((f) => f.set(layerOf(f), gzipSync(makeTar([{ name: 'b', content: 'x' }])))),
      'digest_mismatch',
    ],
    ['a layer of another size', changed((f) => f.set(layerOf(f), gzipSync(makeTar([{ name: 'b'.repeat(90) }])))), 'image_malformed'],
    ['a layer that is missing', changed((f) => f.delete(layerOf(f))), 'image_malformed'],
    [
      'a layer of another plain digest',
      layoutFiles([{ layers: [{ entries: [], diffId: `sha256:${'0'.repeat(64)}` }] }]),
      'digest_mismatch',
    ],
    [
      'a layer that is not compressed as it says',
      layoutFiles([{ layers: [{ entries: [], compression: 'none', mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip' }] }]),
      'layer_malformed',
    ],
    [
      'a layer of an unknown type',
      layoutFiles([{ layers: [{ entries: [], mediaType: 'application/octet-stream' }] }]),
      'image_unsupported',
    ],
    ['a type that every object has', layoutFiles([{ layers: [{ entries: [], mediaType: 'constructor' }] }]), 'image_unsupported'],
    ['a manifest that was changed', changed((f) => f.set(blobOf(f, '"layers":[{'), Buffer.from('{}'))), 'image_malformed'],
    [
      'a configuration that was changed',
      changed((f) => {
        const name = blobOf(f, 'diff_ids');
        f.set(name, Buffer.from(f.get(name)?.toString().replace('amd64', 'amd65') ?? ''));
      }),
      'digest_mismatch',
    ],
    ['no index', changed((f) => f.delete('index.json')), 'image_malformed'],
    ['an index that is no JSON', edited('index.json', () => '{'), 'image_malformed'],
    ['an index that is no UTF-8', changed((f) => f.set('index.json', Buffer.from([0xff]))), 'image_malformed'],
    ['an index that is too large', changed((f) => f.set('index.json', Buffer.alloc(5 * 1024 * 1024, 0x20))), 'image_malformed'],
    [
      'a digest that is a path',
      edited('index.json', (text) => text.replace(/sha256:[0-9a-f]{64}/, 'sha256:../../../etc/passwd')),
      'image_malformed',
    ],
    [
      'a digest of a weak algorithm',
      edited('index.json', (text) => text.replace(/sha256:[0-9a-f]{64}/, `md5:${'0'.repeat(32)}`)),
      'image_malformed',
    ],
    ['another version of layouts', edited('oci-layout', () => '{"imageLayoutVersion":"2.0.0"}'), 'image_malformed'],
    ['neither layout nor saved archive', changed((f) => f.delete('oci-layout')), 'image_malformed'],
    ['a variable without a name', layoutFiles([{ ...plain, config: { Env: ['=x'] } }]), 'image_malformed'],
    ['a working directory that is relative', layoutFiles([{ ...plain, config: { WorkingDir: '..' } }]), 'image_malformed'],
    ['an entry with ..', layoutFiles([{ layers: [{ entries: [{ name: '../a' }] }] }]), 'entry_refused'],
  ];
  for (const [what, files, code] of REFUSED) {
    it(`with ${what} is refused as ${code}`, async () => {
      const path = writeFiles(at('layout'), files);
      expect(await build(at(), { source: { kind: 'oci-layout', path } }).catch(codeOf)).toBe(code);
    });
  }

  it('with an index that names itself is refused', async () => {
    const index = (digest: string, size: number): Buffer =>
      json({ schemaVersion: 2, manifests: [{ mediaType: 'application/vnd.oci.image.index.v1+json', digest, size }] });
    let inner = index(`sha256:${'0'.repeat(64)}`, 1);
    const files = layoutFiles([]);
    for (let depth = 0; depth < 6; depth += 1) {
      files.set(`blobs/sha256/${sha256(inner)}`, inner);
      inner = index(`sha256:${sha256(inner)}`, inner.length);
    }
    files.set('index.json', inner);
    const path = writeFiles(at('layout'), files);
    expect(await build(at(), { source: { kind: 'oci-layout', path } }).catch(codeOf)).toBe('image_malformed');
  });

  it('with a blob that is a link out of its folder is refused', async () => {
    const files = layoutFiles([plain]);
    const layer = layerOf(files);
    const bytes = files.get(layer) ?? Buffer.alloc(0);
    files.delete(layer);
    const path = writeFiles(at('layout'), files);
    writeFileSync(at('outside'), bytes);
    symlinkSync(at('outside'), at('layout', layer));
    expect(await build(at(), { source: { kind: 'oci-layout', path } }).catch(codeOf)).toBe('source_unreadable');
  });

  it('with more bytes, entries or layers than are allowed is refused before they are on the disk', async () => {
    const bomb: TestImage = { layers: [{ entries: [{ name: 'zeros', content: Buffer.alloc(20_000_000) }] }] };
    const path = writeFiles(at('layout'), layoutFiles([bomb]));
    const source = { kind: 'oci-layout', path } as const;
    expect(await build(at(), { source, limits: { maxBytes: 1_000_000 } }).catch(codeOf)).toBe('image_too_large');
    expect(await build(at(), { source, limits: { maxEntries: 0 } }).catch(codeOf)).toBe('image_too_large');
    expect(await build(at(), { source, limits: { maxLayers: 0 } }).catch(codeOf)).toBe('image_too_large');
    expect((await build(at(), { source })).facts.entryCount).toBe(2);
  });

  it('that is saved with a configuration of another digest is refused', async () => {
    const files = savedFiles(plain);
    const config = [...files.keys()].find((name) => /^[0-9a-f]{64}\.json$/.test(name)) ?? '';
    files.set(config, Buffer.from(`${files.get(config)} `));
    writeFileSync(at('s.tar'), archiveFiles(files));
    expect(await build(at(), { source: { kind: 'docker-archive', path: at('s.tar') } }).catch(codeOf)).toBe('digest_mismatch');
  });

  it('from a folder that is not there, or cannot be read whole, is refused', async () => {
    expect(await build(at(), { source: { kind: 'directory', path: at('none'), owners: 'root' } }).catch(codeOf)).toBe('tool_failed');
    expect(await build(at(), { source: { kind: 'docker-archive', path: at('none') } }).catch(codeOf)).toBe('source_unreadable');
  });

  it('is given up when the caller says so', async () => {
    mkdirSync(at('d'));
    const signal = AbortSignal.abort(new Error('no longer wanted'));
    await expect(build(at(), { source: { kind: 'directory', path: at('d'), owners: 'root' }, signal })).rejects.toThrow('no longer wanted');
  });
});
