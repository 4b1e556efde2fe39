import { open } from 'node:fs/promises';

/** Where ext4 has its superblock, and the bytes of it. */
const SUPERBLOCK_OFFSET = 1024;
export const SUPERBLOCK_BYTES = 1024;
/** Fields of it: the magic number, the state, the features that a reader must know. */
const MAGIC_AT = 0x38;
const STATE_AT = 0x3a;
const INCOMPATIBLE_AT = 0x60;
const MAGIC = 0xef53;
const STATE_CLEAN = 1;
const NEEDS_RECOVERY = 0x4;

/** What a disk of a VM is to the next one: a clean ext4; one that was not left in order or has errors; something else. */
export type DiskState = 'clean' | 'unclean' | 'no ext4';

/** Reads two numbers of a superblock that a guest wrote, at fixed places: nothing else of it is looked at on a host. */
export function diskStateOf(superblock: Uint8Array): DiskState {
  const view = new DataView(superblock.buffer, superblock.byteOffset, superblock.byteLength);
  if (superblock.byteLength < SUPERBLOCK_BYTES || view.getUint16(MAGIC_AT, true) !== MAGIC) return 'no ext4';
  const needsRecovery = (view.getUint32(INCOMPATIBLE_AT, true) & NEEDS_RECOVERY) !== 0;
  return view.getUint16(STATE_AT, true) === STATE_CLEAN && !needsRecovery ? 'clean' : 'unclean';
}

/** The state of the disk in a file; throws Node's errors for one that cannot be read. */
export async function readDiskState(path: string): Promise<DiskState> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SUPERBLOCK_BYTES), 0, SUPERBLOCK_BYTES, SUPERBLOCK_OFFSET);
    return diskStateOf(buffer.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
}
