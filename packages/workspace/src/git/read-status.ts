import { malformed, pathKey, splitRecords } from './git-records.ts';

/** How a working tree differs from HEAD, by `pathKey`. A folder that is ignored as a whole, or a repository of its own, ends in `/`. */
export interface WorkingTreeStatus {
  readonly changed: ReadonlySet<string>;
  readonly removed: ReadonlySet<string>;
  readonly untracked: ReadonlySet<string>;
  readonly ignored: ReadonlySet<string>;
}

const GONE = '000000';
// Fields in front of the path, by the first letter of a record.
const ORDINARY = /^1 (?:..) (....) [0-7]{6} [0-7]{6} ([0-7]{6}) [0-9a-f]+ [0-9a-f]+ ([\s\S]+)$/;
const UNMERGED = /^u (?:..) (....) [0-7]{6} [0-7]{6} [0-7]{6} ([0-7]{6}) [0-9a-f]+ [0-9a-f]+ [0-9a-f]+ ([\s\S]+)$/;

/** Reads `status --porcelain=v2 -z --no-renames`. Throws CodedError `git_answer_malformed`. */
export function parseStatus(output: Uint8Array): WorkingTreeStatus {
  const changed = new Set<string>();
  const removed = new Set<string>();
  const untracked = new Set<string>();
  const ignored = new Set<string>();
  for (const record of splitRecords(output)) {
    const text = pathKey(record);
    if (text.startsWith('# ')) continue;
    if (text.startsWith('? ')) untracked.add(text.slice(2));
    else if (text.startsWith('! ')) ignored.add(text.slice(2));
    else {
      const [, submodule, mode, path] = (text.startsWith('u') ? UNMERGED : ORDINARY).exec(text) ?? [];
      if (submodule === undefined || mode === undefined || path === undefined) throw malformed('a record of status is not well-formed');
      if (submodule.startsWith('S')) continue;
      (mode === GONE ? removed : changed).add(path);
    }
  }
  // Taken out of the index and still there: it is a change of content at most.
  for (const path of untracked) removed.delete(path);
  return { changed, removed, untracked, ignored };
}
