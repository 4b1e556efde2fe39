import { expect, it } from 'vitest';
import * as rootfs from '../src/index.ts';

it('limits and fixed values are these', () => {
  expect({
    limits: rootfs.DEFAULT_IMAGE_LIMITS,
    path: [rootfs.MAX_PATH_BYTES, rootfs.MAX_COMPONENT_BYTES, rootfs.MAX_PATH_DEPTH, rootfs.MAX_LINK_HOPS],
    document: rootfs.MAX_DOCUMENT_BYTES,
    recipe: rootfs.MAX_RECIPE_BYTES,
    payload: [rootfs.MAX_PAYLOAD_BYTES, rootfs.PAYLOAD_ZSTD_LEVEL, rootfs.PAYLOAD_BLOCK_BYTES, rootfs.PAYLOAD_MOUNT],
    image: [rootfs.IMAGE_ZSTD_LEVEL, rootfs.IMAGE_BLOCK_BYTES, rootfs.FIXED_TIME_SECONDS],
    files: [rootfs.ROOT_FILE, rootfs.PAYLOAD_FILE, rootfs.BZIMAGE_FILE, rootfs.VMLINUX_FILE, rootfs.INITRD_FILE],
    label: rootfs.SCRATCH_LABEL,
  }).toEqual({
    limits: { maxBytes: 17_179_869_184, maxEntries: 1_000_000, maxLayers: 256, maxMetaBytes: 1_048_576, maxResolveSteps: 100_000_000 },
    path: [4_095, 255, 256, 40],
    document: 4_194_304,
    recipe: 65_536,
    payload: [120_586_240, 19, 1_048_576, '/opt/firecrew'],
    image: [6, 131_072, 946_684_800],
    files: ['root.squashfs', 'payload.squashfs', 'bzImage', 'vmlinux', 'initrd'],
    label: 'fc-scratch',
  });
});

it('every module without which no guest comes up is one that is looked for', () => {
  expect(rootfs.REQUIRED_MODULES.filter((name) => !rootfs.GUEST_MODULES.includes(name))).toEqual([]);
});
