import { codeOf, messageOf } from '@firecrew/base';
import { malformed, splitRecords } from './git-records.ts';
import { clampBothEnds } from './git-text.ts';
import { GIT_LISTING_MAX_BYTES, GIT_LOCAL_TIMEOUT_MS, runGit } from './run-git.ts';

/** Bytes of a patch that are kept. */
export const MAX_PATCH_BYTES = 4 * 1024 * 1024;
/** Longest reason of a diff that could not be computed, in characters. */
export const DIFF_ERROR_MAX_CHARS = 300;

/** One path of a diff. `path` is the new name of a rename. */
export interface NameStatusEntry {
  readonly status: 'A' | 'C' | 'D' | 'M' | 'R' | 'T';
  readonly path: Buffer;
  readonly oldPath?: Buffer;
}

/** Sizes of a diff; lines of binary files are not counted. */
export interface DiffStat {
  readonly files: number;
  readonly binaryFiles: number;
  readonly insertions: number;
  readonly deletions: number;
}

/** What lies between two commits. `empty` means something only while `diffError` is absent. */
export interface CommitDiff {
  readonly patch: Buffer;
  readonly truncated: boolean;
  readonly nameStatus: readonly NameStatusEntry[];
  readonly diffStat: DiffStat;
  /** What git printed, kept as evidence. */
  readonly rawNameStatus: Buffer;
  readonly rawNumStat: Buffer;
  readonly empty: boolean;
  readonly diffError?: { readonly code: string; readonly message: string };
}

const LETTERS = ['A', 'C', 'D', 'M', 'R', 'T'] as const;

function statusOf(field: Buffer | undefined): NameStatusEntry['status'] | undefined {
  const letter = /^([A-Z])[0-9]*$/.exec(field?.toString('latin1') ?? '')?.[1];
  return LETTERS.find((known) => known === letter);
}

/** Reads `--name-status -z`: for renames and copies the old name comes first. */
export function parseNameStatus(output: Uint8Array): NameStatusEntry[] {
  const fields = splitRecords(output);
  const entries: NameStatusEntry[] = [];
  for (let at = 0; at < fields.length; ) {
    const status = statusOf(fields[at]);
    const first = fields[at + 1];
    if (status === undefined || first === undefined) throw malformed('a record of name-status is not well-formed');
    const second = fields[at + 2];
    if (status !== 'R' && status !== 'C') {
      entries.push({ status, path: first });
      at += 2;
    } else if (second !== undefined) {
      entries.push({ status, path: second, oldPath: first });
      at += 3;
    } else throw malformed('a renamed path has no new name');
  }
  return entries;
}

/** Reads `--numstat -z`; an empty answer is all zeroes. */
export function parseNumStat(output: Uint8Array): DiffStat {
  const fields = splitRecords(output);
  let [files, binaryFiles, insertions, deletions] = [0, 0, 0, 0];
  for (let at = 0; at < fields.length; ) {
    const [, added, deleted, path] = /^([0-9]+|-)\t([0-9]+|-)\t([\s\S]*)$/.exec(fields[at]?.toString('latin1') ?? '') ?? [];
    if (added === undefined || deleted === undefined) throw malformed('a record of numstat is not well-formed');
    files += 1;
    if (added === '-') binaryFiles += 1;
    else {
      insertions += Number(added);
      deletions += Number(deleted);
    }
    // A rename leaves the path empty and names both in the two fields that follow.
    at += path === '' ? 3 : 1;
  }
  return { files, binaryFiles, insertions, deletions };
}

const FIXED = ['-r', '-M', '--no-ext-diff', '--no-textconv', '--no-color', '--ignore-submodules=none'];
const NOTHING: DiffStat = { files: 0, binaryFiles: 0, insertions: 0, deletions: 0 };

/** Patch, paths and sizes between two commits or trees; a diff that could not be computed says so and is never an empty one. */
export async function readDiff(
  gitDir: string,
  base: string,
  commit: string,
  options: { readonly maxPatchBytes?: number } = {},
): Promise<CommitDiff> {
  const run = (form: readonly string[], maxOutputBytes: number, onTooMuchOutput: 'fail' | 'truncate') =>
    runGit(['diff-tree', ...FIXED, ...form, '--end-of-options', base, commit, '--'], {
      gitDir,
      timeoutMs: GIT_LOCAL_TIMEOUT_MS,
      maxOutputBytes,
      onTooMuchOutput,
    });
  let [patch, rawNameStatus, rawNumStat] = [Buffer.alloc(0), Buffer.alloc(0), Buffer.alloc(0)];
  let truncated = false;
  let nameStatus: NameStatusEntry[] = [];
  let diffStat = NOTHING;
  let diffError: CommitDiff['diffError'];
  try {
    rawNameStatus = Buffer.from((await run(['--name-status', '-z'], GIT_LISTING_MAX_BYTES, 'fail')).stdout);
    nameStatus = parseNameStatus(rawNameStatus);
    const text = await run(
      ['-p', '--binary', '--full-index', '--src-prefix=a/', '--dst-prefix=b/'],
      options.maxPatchBytes ?? MAX_PATCH_BYTES,
      'truncate',
    );
    patch = Buffer.from(text.stdout);
    truncated = text.truncated;
    rawNumStat = Buffer.from((await run(['--numstat', '-z'], GIT_LISTING_MAX_BYTES, 'fail')).stdout);
    diffStat = parseNumStat(rawNumStat);
  } catch (error) {
    diffError = { code: codeOf(error) ?? 'git_failed', message: clampBothEnds(messageOf(error), DIFF_ERROR_MAX_CHARS) };
  }
  const found = { patch, truncated, nameStatus, diffStat, rawNameStatus, rawNumStat, empty: nameStatus.length === 0 && patch.length === 0 };
  return diffError === undefined ? found : { ...found, diffError };
}
