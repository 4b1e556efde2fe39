import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { codeOf } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { readElf, SEGMENT } from '../../src/elf/read-elf.ts';
import { extractKernel } from '../../src/index.ts';
import { makeElf, makeModule } from '../support/make-elf.ts';
import { MODULES, makeBzImage, makeDeb, packageData, storeLz4, VERSION, VMLINUX } from '../support/make-kernel.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { itWith, runTool } from '../support/tools.ts';

const at = temporaryFolder();
let runs = 0;

async function extract(bytes: Buffer, modules?: string, wanted?: readonly string[]) {
  runs += 1;
  const [target, work] = [at(`target-${runs}`), at(`work-${runs}`)];
  mkdirSync(target);
  mkdirSync(work);
  writeFileSync(at('source'), bytes);
  const facts = await extractKernel({ path: at('source'), modules, target, work, ...(wanted === undefined ? {} : { wanted }) });
  return { facts, read: (name: string) => readFileSync(`${target}/${name}`), names: readdirSync(target).sort() };
}

function writeModules(modules: Readonly<Record<string, Buffer>>, more: Readonly<Record<string, string>>): string {
  for (const [path, content] of [...Object.entries(modules), ...Object.entries(more)]) {
    mkdirSync(dirname(at('modules', VERSION, path)), { recursive: true });
    writeFileSync(at('modules', VERSION, path), content);
  }
  return at('modules');
}

const IMAGE = makeBzImage(gzipSync(VMLINUX));
const ORDER = ['virtio_ring', 'virtio', 'virtio_rng', 'virtio_blk', 'overlay', 'squashfs'];

describe('a kernel', () => {
  /** [how it is packed, the bytes] */
  const PACKED: readonly (readonly [string, Buffer])[] = [
    ['gzip', gzipSync(VMLINUX)],
    ['zstd', zstdCompressSync(VMLINUX)],
    ['lz4', storeLz4(VMLINUX)],
    ['nothing', VMLINUX],
  ];
  it.each(PACKED)('packed with %s is unpacked, and kept as it is', async (_how, packed) => {
    const image = makeBzImage(packed);
    const { facts, read, names } = await extract(image);
    expect(read('bzImage')).toEqual(image);
    expect(read('vmlinux')).toEqual(VMLINUX);
    expect(facts).toEqual({ kind: 'kernel', architecture: 'amd64', version: VERSION, modules: [], builtIn: [], missing: [] });
    expect(names).toEqual(['bzImage', 'vmlinux']);
  });

  const withXz = itWith('xz');
  for (const format of ['xz', 'lzma'])
    withXz(`packed with ${format} is unpacked by that tool`, async () => {
      const packed = runTool('xz', ['--compress', `--format=${format}`, '--stdout'], { input: VMLINUX });
      expect((await extract(makeBzImage(packed))).read('vmlinux')).toEqual(VMLINUX);
    });

  itWith('lz4')('packed by the tool for LZ4, with matches, is unpacked the same', async () => {
    const packed = runTool('lz4', ['-l', '-9', '-c', '-'], { input: VMLINUX });
    expect(packed.length).toBeLessThan(VMLINUX.length / 2);
    expect((await extract(makeBzImage(packed))).read('vmlinux')).toEqual(VMLINUX);
  });

  /** [the member, its bytes] */
  const MEMBERS: readonly (readonly [string, (data: Buffer) => Buffer])[] = [
    ['data.tar', (data) => data],
    ['data.tar.gz', (data) => gzipSync(data)],
    ['data.tar.zst', (data) => zstdCompressSync(data)],
  ];
  it.each(MEMBERS)('of a package with %s comes with the modules a guest needs, in the order they are loaded in', async (name, pack) => {
    const { facts, read, names } = await extract(makeDeb(name, pack(packageData(IMAGE))));
    expect(facts.modules.map((module) => module.name)).toEqual(ORDER);
    expect(facts.builtIn).toEqual(['ext4']);
    expect(facts.missing).toContain('virtio_balloon');
    expect(names).toEqual(['bzImage', 'modules', 'vmlinux']);
    expect(read('modules/virtio_rng.ko')).toEqual(MODULES['kernel/drivers/char/virtio-rng.ko']);
  });

  withXz('of a package with data.tar.xz is the same', async () => {
    const data = runTool('xz', ['--compress', '--stdout'], { input: packageData(IMAGE) });
    expect((await extract(makeDeb('data.tar.xz', data))).facts.modules).toHaveLength(ORDER.length);
  });

  it('that lies on this machine takes its needs from modules.dep, and unpacks modules', async () => {
    const packed = {
      'kernel/a/virtio_ring.ko.zst': zstdCompressSync(makeModule('virtio_ring')),
      'kernel/a/virtio.ko.gz': gzipSync(makeModule('virtio')),
      'kernel/a/virtio_blk.ko': makeModule('virtio_blk'),
    };
    const dep = [
      'kernel/a/virtio_ring.ko.zst:',
      'kernel/a/virtio.ko.gz: kernel/a/virtio_ring.ko.zst',
      'kernel/a/virtio_blk.ko: kernel/a/virtio.ko.gz kernel/a/virtio_ring.ko.zst',
    ];
    const folder = writeModules(packed, { 'modules.dep': `${dep.join('\n')}\n`, 'modules.builtin': 'kernel/fs/overlayfs/overlay.ko\n' });
    const { facts, read } = await extract(IMAGE, folder, ['virtio_blk', 'overlay']);
    expect(facts.modules.map(({ name }) => name)).toEqual(['virtio_ring', 'virtio', 'virtio_blk']);
    expect(facts.builtIn).toEqual(['overlay']);
    expect(read('modules/virtio.ko')).toEqual(makeModule('virtio'));
  });

  it('without what every guest needs is refused', async () => {
    const { 'kernel/fs/squashfs/squashfs.ko': _gone, ...others } = MODULES;
    expect(await extract(makeDeb('data.tar', packageData(IMAGE, others))).catch(codeOf)).toBe('kernel_module_missing');
  });

  const broken = (name: string, content: Buffer): Buffer => makeDeb('data.tar', packageData(IMAGE, { ...MODULES, [name]: content }));
  /** [what, the bytes, the code] */
  const REFUSED: readonly (readonly [string, Buffer, string])[] = [
    ['an empty file', Buffer.alloc(0), 'kernel_malformed'],
    ['a text', Buffer.alloc(4_000, 'x'), 'kernel_malformed'],
    [
      'a payload behind its end',
      (() => {
        const image = Buffer.from(IMAGE);
        image.writeUInt32LE(0xfffffff0, 0x24c);
        return image;
      })(),
      'kernel_malformed',
    ],
    [
      'a payload offset behind its end',
      (() => {
        const image = Buffer.from(IMAGE);
        image.writeUInt32LE(0xfffffff0, 0x248);
        return image;
      })(),
      'kernel_malformed',
    ],
    [
      'no payload',
      (() => {
        const image = Buffer.from(IMAGE);
        image.writeUInt32LE(0, 0x24c);
        return image;
      })(),
      'kernel_malformed',
    ],
    ['a version that is a path', makeBzImage(gzipSync(VMLINUX), { version: '../../x' }), 'kernel_malformed'],
    ['no version', makeBzImage(gzipSync(VMLINUX), { version: '' }), 'kernel_malformed'],
    ['more bytes than it states', makeBzImage(gzipSync(VMLINUX), { unpacked: 100 }), 'kernel_malformed'],
    ['fewer bytes than it states', makeBzImage(gzipSync(VMLINUX), { unpacked: 100_000 }), 'kernel_malformed'],
    ['a size past every kernel', makeBzImage(gzipSync(VMLINUX), { unpacked: 0xffffffff }), 'kernel_malformed'],
    ['an unknown packing', makeBzImage(Buffer.from('unknown packing')), 'kernel_unsupported'],
    ['a damaged packing', makeBzImage(gzipSync(VMLINUX).fill(7, 20, 40)), 'kernel_malformed'],
    ['a packing of something else', makeBzImage(gzipSync(Buffer.alloc(500, 'x')), { unpacked: 500 }), 'kernel_malformed'],
    [
      'a kernel for another processor',
      (() => {
        const other = Buffer.from(VMLINUX);
        other.writeUInt16LE(183, 18);
        return makeBzImage(gzipSync(other));
      })(),
      'kernel_malformed',
    ],
    ['LZ4 that says more than it has', makeBzImage(storeLz4(VMLINUX).subarray(0, 200)), 'kernel_malformed'],
    ['a package that is cut', makeDeb('data.tar', packageData(IMAGE)).subarray(0, 5_000), 'package_malformed'],
    ['a package without data', makeDeb('data.zip', Buffer.alloc(0)), 'package_malformed'],
    ['a package of unknown compression', makeDeb('data.tar.br', Buffer.alloc(0)), 'package_malformed'],
    ['a package without a kernel', makeDeb('data.tar', Buffer.alloc(1024)), 'package_malformed'],
    ['a package whose header is damaged', Buffer.concat([Buffer.from('!<arch>\n'), Buffer.alloc(60)]), 'package_malformed'],
    ['a module that is none', broken('kernel/fs/overlayfs/overlay.ko', Buffer.from('text')), 'kernel_malformed'],
    ['a module that needs itself', broken('kernel/fs/overlayfs/overlay.ko', makeModule('overlay', ['overlay'])), 'modules_malformed'],
    [
      'a module that needs what is nowhere',
      broken('kernel/fs/overlayfs/overlay.ko', makeModule('overlay', ['absent'])),
      'modules_malformed',
    ],
  ];
  it.each(REFUSED)('with %s is refused', async (_what, bytes, code) => {
    expect(await extract(bytes).catch(codeOf)).toBe(code);
  });

  it('that is not there is said to be unreadable', async () => {
    mkdirSync(at('t'));
    expect(await extractKernel({ path: at('none'), target: at('t'), work: at('t') }).catch(codeOf)).toBe('source_unreadable');
  });
});

const realFolder =
  process.env.FIRECREW_TEST_KERNEL ?? fileURLToPath(new URL('../../../../node_modules/.cache/test-kernel', import.meta.url));
const realImage = existsSync(join(realFolder, 'boot'))
  ? readdirSync(join(realFolder, 'boot')).find((name) => name.startsWith('vmlinuz-'))
  : undefined;

describe('the kernel that Debian makes for virtual machines', () => {
  if (realImage === undefined) {
    it.skip('is not read: FIRECREW_TEST_KERNEL names no folder with boot and lib/modules', () => undefined);
    return;
  }
  it('has every module a guest needs, and an unpacked form of the size it states', async () => {
    const image = readFileSync(join(realFolder, 'boot', realImage));
    const { facts, read } = await extract(image, join(realFolder, 'lib', 'modules'));
    expect(facts.version).toBe(realImage.slice('vmlinuz-'.length));
    expect(facts.missing).toEqual([]);
    const loaded = facts.modules.map(({ name }) => name);
    expect(loaded).toEqual(
      expect.arrayContaining(['virtio_ring', 'virtio_pci', 'virtio_blk', 'virtio_console', 'vsock', 'overlay', 'squashfs']),
    );
    expect(loaded.indexOf('virtio_ring')).toBeLessThan(loaded.indexOf('virtio_blk'));
    expect(readElf(read('vmlinux')).segments.length).toBeGreaterThan(2);
  });
});

describe('the initrd of a kernel', () => {
  const init = makeElf({ segments: [{ type: SEGMENT.load, content: Buffer.from('guest-init') }] });
  const withInit = async (program: Buffer | undefined) => {
    for (const name of ['target', 'work']) mkdirSync(at(name));
    writeFileSync(at('deb'), makeDeb('data.tar', packageData(IMAGE)));
    if (program !== undefined) writeFileSync(at('init'), program);
    await extractKernel({ path: at('deb'), init: at('init'), target: at('target'), work: at('work') });
    return gunzipSync(readFileSync(at('target', 'initrd'))).toString('latin1');
  };

  it('holds guest-init and the modules that are loaded', async () => {
    const archive = await withInit(init);
    expect(archive).toContain('guest-init');
    expect(archive).toContain(ORDER.map((name) => `/modules/${name}.ko\n`).join(''));
  });

  it('is never made with a program that needs a loader', async () => {
    const linked = makeElf({ segments: [{ type: SEGMENT.interpreter, content: Buffer.from('/lib/ld.so\0') }] });
    expect(await withInit(linked).catch(codeOf)).toBe('elf_malformed');
  });

  it('needs guest-init to be there', async () => {
    expect(await withInit(undefined).catch(codeOf)).toBe('source_unreadable');
  });
});
