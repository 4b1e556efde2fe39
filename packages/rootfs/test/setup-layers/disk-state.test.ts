import { describe, expect, it } from 'vitest';
import { createScratch, readDiskState } from '../../src/index.ts';
import { diskStateOf, SUPERBLOCK_BYTES } from '../../src/setup-layers/disk-state.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { itWith, runTool } from '../support/tools.ts';

const at = temporaryFolder();

/** A superblock of these fields. */
function superblock({ magic = 0xef53, state = 1, incompatible = 0x2c2 }): Uint8Array {
  const bytes = Buffer.alloc(SUPERBLOCK_BYTES);
  bytes.writeUInt16LE(magic, 0x38);
  bytes.writeUInt16LE(state, 0x3a);
  bytes.writeUInt32LE(incompatible, 0x60);
  return bytes;
}

describe('the state of a disk', () => {
  it.each([
    ['clean', 'an ext4 that was left in order', superblock({})],
    ['unclean', 'a journal that is to be replayed', superblock({ incompatible: 0x2c2 | 0x4 })],
    ['unclean', 'errors', superblock({ state: 3 })],
    ['unclean', 'no mark of an end in order', superblock({ state: 0 })],
    ['no ext4', 'another number', superblock({ magic: 0xef54 })],
    ['no ext4', 'nothing', new Uint8Array(SUPERBLOCK_BYTES)],
    ['no ext4', 'less than a superblock', superblock({}).subarray(0, SUPERBLOCK_BYTES - 1)],
    ['no ext4', 'no bytes at all', new Uint8Array(0)],
  ])('is %s for %s', (state, _what, bytes) => {
    expect(diskStateOf(bytes)).toBe(state);
  });

  itWith('mke2fs', 'debugfs')('is read of a disk as it is made, and of one whose guest was killed', async () => {
    await createScratch({ path: at('s'), sizeMib: 64 });
    expect(await readDiskState(at('s'))).toBe('clean');
    runTool('debugfs', ['-w', '-R', 'feature needs_recovery', at('s')]);
    expect(await readDiskState(at('s'))).toBe('unclean');
  });

  it('is no answer for a disk that cannot be read', async () => {
    await expect(readDiskState(at('absent'))).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
