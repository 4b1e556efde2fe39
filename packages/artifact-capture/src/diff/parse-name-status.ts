import { byteKey } from '../bytes.ts';
import { CaptureError } from '../capture-error.ts';
import { splitFields, takePath } from './split-fields.ts';

/** Added, copied, deleted, modified, renamed, type changed. */
export type StatusLetter = 'A' | 'C' | 'D' | 'M' | 'R' | 'T';

/** One changed path; a rename or a copy counts once, as its new path. */
export interface NameStatus {
  readonly status: StatusLetter;
  readonly path: Uint8Array;
  /** Where a rename or a copy came from. */
  readonly from?: Uint8Array;
}

const PLAIN = /^[ADMT]$/;
const MOVED = /^[CR](100|[0-9]{1,3})$/;

/**
 * Reads the output of `git diff --name-status -z`. Unmerged and unknown letters are refused: they are no finished diff.
 * @throws CaptureError `malformed_listing`.
 */
export function parseNameStatus(listing: Uint8Array): NameStatus[] {
  const fields = splitFields(listing).values();
  const changes: NameStatus[] = [];
  for (let next = fields.next(); next.done !== true; next = fields.next()) {
    const code = byteKey(next.value.subarray(0, 8));
    const status = letterOf(code);
    if (MOVED.test(code)) {
      const from = takePath(fields);
      changes.push({ status, path: takePath(fields), from });
    } else changes.push({ status, path: takePath(fields) });
  }
  return changes;
}

function letterOf(code: string): StatusLetter {
  if (PLAIN.test(code) || MOVED.test(code)) {
    const letter = (['A', 'C', 'D', 'M', 'R', 'T'] as const).find((known) => known === code[0]);
    if (letter !== undefined) return letter;
  }
  throw new CaptureError('malformed_listing', 'a status is unknown');
}
