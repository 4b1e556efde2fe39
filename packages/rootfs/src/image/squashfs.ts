import { CodedError } from '@firecrew/base';
import type { EntryMetadata } from '../tar/tar-entry.ts';
import { runTool, TOOLS } from '../tools/run-tool.ts';

/** Bytes of the first block of a squashfs file system. */
export const SUPERBLOCK_BYTES = 96;
/** A file system is padded to whole blocks of this many bytes, so that every block device can hold it. */
export const DEVICE_BLOCK_BYTES = 4_096;

const MAGIC = 0x73717368;
const COMPRESSORS: Readonly<Record<number, string>> = { 1: 'gzip', 2: 'lzma', 3: 'lzo', 4: 'xz', 5: 'lz4', 6: 'zstd' };

/** What the first block of a squashfs file system says. */
export interface SquashfsHeader {
  readonly inodes: number;
  readonly compressor: string;
  /** Without the padding behind it. */
  readonly bytesUsed: number;
}

/** How a squashfs file system is packed. */
export interface SquashfsOptions {
  /** Level of zstd, 1 to 22. */
  readonly level: number;
  /** A power of two from 4 KiB to 1 MiB: larger ones pack better and read slower. */
  readonly blockBytes: number;
  readonly signal?: AbortSignal | undefined;
}

/** Reads the first block. Throws `squashfs_malformed`. */
export function parseSquashfsHeader(block: Buffer): SquashfsHeader {
  if (block.length < SUPERBLOCK_BYTES || block.readUInt32LE(0) !== MAGIC || block.readUInt16LE(28) !== 4)
    throw new CodedError('squashfs_malformed', 'this is no squashfs file system of version 4', { action: 'Build the image again.' });
  return {
    inodes: block.readUInt32LE(4),
    compressor: COMPRESSORS[block.readUInt16LE(20)] ?? 'unknown',
    bytesUsed: Number(block.readBigUInt64LE(40)),
  };
}

/**
 * Turns a tar stream into a squashfs file system in a new file. Nothing is unpacked: owners, modes and devices are those of the headers, and
 * no right over them is needed. The same stream gives the same bytes. Throws `tool_missing`, `tool_failed`.
 */
export async function writeSquashfs(
  archive: AsyncIterable<Uint8Array>,
  file: string,
  root: EntryMetadata,
  { level, blockBytes, signal }: SquashfsOptions,
): Promise<void> {
  const defaults = `uid=${root.uid},gid=${root.gid},mode=0${root.mode.toString(8)},mtime=${root.mtime}`;
  const args = ['--quiet', '--no-skip', '--compressor', 'zstd', '--comp-extra', `level=${level}`, '--block-size', String(blockBytes)];
  await runTool({
    tool: TOOLS.tar2sqfs,
    args: [...args, '--dev-block-size', String(DEVICE_BLOCK_BYTES), '--defaults', defaults, '--', file],
    input: archive,
    signal,
  });
}
