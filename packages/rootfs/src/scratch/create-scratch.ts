import { execFile } from 'node:child_process';
import { open } from 'node:fs/promises';
import { CodedError, messageOf } from '@firecrew/base';

/** Label by which guest-init knows a scratch disk. */
export const SCRATCH_LABEL = 'fc-scratch';
/** Where mke2fs is; the folders of the system's administrator are in nobody else's PATH. */
const PLACES = '/usr/sbin:/sbin:/usr/bin:/bin';
const MKE2FS_TIMEOUT_MS = 30_000;

/** One scratch disk to be made. */
export interface ScratchSpec {
  /** Absolute path of a file that does not exist. */
  readonly path: string;
  readonly sizeMib: number;
}

/**
 * Makes the writable disk of one VM: a sparse ext4 that takes up about a megabyte until it is written to. Throws `scratch_failed`,
 * and nothing is left then.
 */
export async function createScratch({ path, sizeMib }: ScratchSpec): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.truncate(sizeMib * 1024 * 1024);
  } finally {
    await file.close();
  }
  await new Promise<void>((resolve, reject) => {
    // No reserved blocks: nobody but the guest writes there. Lazy tables keep the file sparse and the start fast.
    const options = [
      '-q',
      '-F',
      '-t',
      'ext4',
      '-m',
      '0',
      '-L',
      SCRATCH_LABEL,
      '-E',
      'lazy_itable_init=1,lazy_journal_init=1,nodiscard',
      path,
    ];
    execFile('mke2fs', options, { timeout: MKE2FS_TIMEOUT_MS, env: { PATH: PLACES } }, (error, _stdout, stderr) => {
      if (error === null) return resolve();
      reject(
        new CodedError('scratch_failed', `The scratch disk ${path} could not be made: ${stderr.trim() || messageOf(error)}`, {
          id: path,
          action: 'Install e2fsprogs, and see that the disk of the host has room.',
          cause: error,
        }),
      );
    });
  });
}
