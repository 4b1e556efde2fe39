import { open, rm } from 'node:fs/promises';
import { CodedError, messageOf } from '@firecrew/base';
import { runTool, TOOLS } from '../tools/run-tool.ts';

/** Label by which guest-init knows a scratch disk. */
export const SCRATCH_LABEL = 'fc-scratch';
const MKE2FS_TIMEOUT_MS = 30_000;
const MIB = 1024 * 1024;

/** The same on every host, whatever its mke2fs.conf says: each of them is older than the kernels that are booted here. */
const FEATURES = [
  ...['none', 'has_journal', 'ext_attr', 'resize_inode', 'dir_index', 'filetype', 'extent', '64bit', 'flex_bg', 'sparse_super'],
  ...['large_file', 'huge_file', 'dir_nlink', 'extra_isize', 'metadata_csum'],
].join(',');

/** One scratch disk to be made. */
export interface ScratchSpec {
  /** Absolute path of a file that does not exist. */
  readonly path: string;
  readonly sizeMib: number;
}

/**
 * Makes the writable disk of one VM: a sparse ext4 that takes up a few megabytes until it is written to, in some 20 ms. Throws
 * `scratch_failed`, and nothing is left then; a file that is there is never touched.
 */
export async function createScratch({ path, sizeMib }: ScratchSpec): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.truncate(sizeMib * MIB);
    await file.close();
    await runTool({
      tool: TOOLS.mke2fs,
      args: [...scratchOptions(sizeMib), '--', path],
      env: { MKE2FS_CONFIG: '/dev/null' },
      signal: AbortSignal.timeout(MKE2FS_TIMEOUT_MS),
    });
  } catch (cause) {
    await file.close();
    await rm(path, { force: true });
    throw new CodedError('scratch_failed', `The scratch disk ${path} could not be made: ${messageOf(cause)}`, {
      id: path,
      action: 'Install e2fsprogs, and see that the disk of the host has room.',
      cause,
    });
  }
}

/** How mke2fs makes it. No reserved blocks: nobody but the guest writes there. Lazy tables keep the file sparse and the start fast. */
export function scratchOptions(sizeMib: number): readonly string[] {
  const journalMib = Math.min(Math.max(Math.floor(sizeMib / 32), 4), 64);
  const lazy = 'lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0';
  return [
    ...['-q', '-F', '-O', FEATURES, '-b', '4096', '-I', '256', '-i', '16384', '-m', '0'],
    ...['-J', `size=${journalMib}`, '-L', SCRATCH_LABEL, '-E', lazy],
  ];
}
