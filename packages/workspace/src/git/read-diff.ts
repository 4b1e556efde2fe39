import { type CommandOutput, type DiffRecord, MAX_PATCH_BYTES, recordDiff } from '@firecrew/artifact-capture';
import { messageOf } from '@firecrew/base';
import { GIT_LISTING_MAX_BYTES, GIT_LOCAL_TIMEOUT_MS, runGit } from './run-git.ts';

/** What lies between two commits. `patchBytes` of a truncated patch is a lower bound: git is ended when the limit is passed. */
export interface CommitDiff extends DiffRecord {
  /** What git printed, kept as evidence; absent when it failed. */
  readonly rawNameStatus?: Uint8Array;
  readonly rawNumstat?: Uint8Array;
}

const FIXED = ['-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=none'];
const PATCH = ['-p', '--binary', '--full-index', '--src-prefix=a/', '--dst-prefix=b/'];

/** Patch, paths and sizes between two commits or trees; what could not be computed is in `errors`, and is never an empty diff. */
export async function readDiff(gitDir: string, base: string, commit: string): Promise<CommitDiff> {
  const run = async (form: readonly string[], maxOutputBytes: number, onTooMuchOutput: 'fail' | 'truncate'): Promise<CommandOutput> => {
    try {
      const args = ['diff-tree', ...FIXED, ...form, '--end-of-options', base, commit, '--'];
      const { stdout } = await runGit(args, { gitDir, timeoutMs: GIT_LOCAL_TIMEOUT_MS, maxOutputBytes, onTooMuchOutput });
      return { ok: true, bytes: stdout };
    } catch (error) {
      return { ok: false, error: messageOf(error) };
    }
  };
  // One byte past the limit is what tells a patch that was cut from one that just fits.
  const patch = await run(PATCH, MAX_PATCH_BYTES + 1, 'truncate');
  const nameStatus = await run(['--name-status', '-z'], GIT_LISTING_MAX_BYTES, 'fail');
  const numstat = await run(['--numstat', '-z'], GIT_LISTING_MAX_BYTES, 'fail');
  return {
    ...recordDiff({ patch, nameStatus, numstat }),
    ...(nameStatus.ok ? { rawNameStatus: nameStatus.bytes } : {}),
    ...(numstat.ok ? { rawNumstat: numstat.bytes } : {}),
  };
}
