export { ROOTFS_SECTOR_BYTES } from './sector.ts';
