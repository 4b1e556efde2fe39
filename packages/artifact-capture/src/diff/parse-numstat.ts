import { byteKey } from '../bytes.ts';
import { CaptureError } from '../capture-error.ts';
import { splitFields, takePath } from './split-fields.ts';

/** Lines added and deleted in one path; a binary file has no lines. */
export interface FileStat {
  readonly path: Uint8Array;
  readonly insertions: number;
  readonly deletions: number;
  readonly isBinary: boolean;
}

/** Sums over all paths. */
export interface DiffStat {
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
  readonly binaryFiles: number;
}

const TAB = 0x09;
const COUNTS = /^(?:([0-9]{1,15})\t([0-9]{1,15})|-\t-)\t$/;

/** Reads the output of `git diff --numstat -z`; a rename is its new path. @throws CaptureError `malformed_listing`. */
export function parseNumstat(listing: Uint8Array): FileStat[] {
  const fields = splitFields(listing).values();
  const stats: FileStat[] = [];
  for (let next = fields.next(); next.done !== true; next = fields.next()) {
    const field = next.value;
    const pathAt = field.indexOf(TAB, field.indexOf(TAB) + 1) + 1;
    const [matched, insertions, deletions] = COUNTS.exec(byteKey(field.subarray(0, pathAt))) ?? [];
    if (matched === undefined) throw new CaptureError('malformed_listing', 'the counts of a path are not well-formed');
    let path = field.subarray(pathAt);
    if (path.length === 0) {
      takePath(fields);
      path = takePath(fields);
    }
    stats.push({ path, insertions: Number(insertions ?? 0), deletions: Number(deletions ?? 0), isBinary: insertions === undefined });
  }
  return stats;
}

/** The sums; of nothing, all zeros. */
export function sumStats(stats: Iterable<FileStat>): DiffStat {
  const sum = { files: 0, insertions: 0, deletions: 0, binaryFiles: 0 };
  for (const stat of stats) {
    sum.files += 1;
    sum.insertions += stat.insertions;
    sum.deletions += stat.deletions;
    if (stat.isBinary) sum.binaryFiles += 1;
  }
  return sum;
}
