/** Block devices of both drivers are made of sectors of this size; an image file must be a whole number of them. */
export const ROOTFS_SECTOR_BYTES = 512;
