import { makeElf, makeModule } from './make-elf.ts';
import { makeTar } from './make-tar.ts';

export const VERSION = '6.9.1-test';
/** The ELF kernel inside. */
export const VMLINUX = makeElf({ sections: [{ name: '.text', content: Buffer.alloc(5_000, 0x90) }] });

/** A bzImage around a packed kernel. */
export function makeBzImage(packed: Buffer, options: { unpacked?: number; version?: string; setup?: number } = {}): Buffer {
  const { unpacked = VMLINUX.length, version = `${VERSION} (builder@host) #1`, setup = 2 } = options;
  const start = (setup + 1) * 512;
  const image = Buffer.alloc(start + 16 + packed.length + 4 + 64);
  image[0x1f1] = setup;
  image.writeUInt16LE(0xaa55, 0x1fe);
  image.write('HdrS', 0x202, 'latin1');
  image.writeUInt16LE(0x020f, 0x206);
  image.writeUInt16LE(0x300 - 512, 0x20e);
  image.write(`${version}\0`, 0x300, 'latin1');
  image.writeUInt32LE(16, 0x248);
  image.writeUInt32LE(packed.length + 4, 0x24c);
  packed.copy(image, start + 16);
  image.writeUInt32LE(unpacked, start + 16 + packed.length);
  return image;
}

/** LZ4 of the legacy form, in one block of literals alone. */
export function storeLz4(bytes: Buffer): Buffer {
  const more = bytes.length - 15;
  const length = Buffer.concat([Buffer.alloc(Math.floor(more / 255), 255), Buffer.from([more % 255])]);
  const block = Buffer.concat([Buffer.from([0xf0]), length, bytes]);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(0x184c2102, 0);
  head.writeUInt32LE(block.length, 4);
  return Buffer.concat([head, block]);
}

/** Modules of the test kernel by path; `ext4` is built in. */
export const MODULES: Readonly<Record<string, Buffer>> = {
  'kernel/drivers/virtio/virtio_ring.ko': makeModule('virtio_ring'),
  'kernel/drivers/virtio/virtio.ko': makeModule('virtio', ['virtio_ring']),
  'kernel/drivers/block/virtio_blk.ko': makeModule('virtio_blk', ['virtio', 'virtio_ring']),
  'kernel/drivers/char/virtio-rng.ko': makeModule('virtio_rng', ['virtio']),
  'kernel/fs/overlayfs/overlay.ko': makeModule('overlay'),
  'kernel/fs/squashfs/squashfs.ko': makeModule('squashfs'),
  'kernel/fs/other/other.ko': makeModule('other'),
};

/** The archive of a package of the kernel. */
export function packageData(image: Buffer, modules: Readonly<Record<string, Buffer>> = MODULES): Buffer {
  const folder = `./lib/modules/${VERSION}`;
  return makeTar([
    { name: './boot/', type: '5' },
    { name: `./boot/vmlinuz-${VERSION}`, content: image },
    ...Object.entries(modules).map(([path, content]) => ({ name: `${folder}/${path}`, content })),
    { name: `${folder}/modules.builtin`, content: 'kernel/fs/ext4/ext4.ko\n' },
  ]);
}

/** A package of Debian whose data is this member. */
export function makeDeb(name: string, data: Buffer): Buffer {
  const member = (memberName: string, content: Buffer): Buffer[] => {
    const header = `${memberName.padEnd(16)}${'0'.padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}${String(content.length).padEnd(10)}\`\n`;
    return [Buffer.from(header), content, Buffer.alloc(content.length % 2, '\n')];
  };
  return Buffer.concat([
    Buffer.from('!<arch>\n'),
    ...member('debian-binary', Buffer.from('2.0\n')),
    ...member('control.tar', Buffer.from('odd')),
    ...member(name, data),
  ]);
}
