import { readableName } from '@firecrew/artifact-capture';
import type { Trailer } from '@firecrew/protocol';
import type { PackReport, PackSkipReason } from '@firecrew/workspace';

/** Paths in each list of a trailer, and left-out folders, at most. */
export const MAX_TRAILER_PATHS = 1000;
export const MAX_TRAILER_FOLDERS = 10_000;

/** Reasons for which a path that belongs to the tree is missing from the archive. */
export const INCOMPLETE_REASONS: readonly string[] = ['unreadable', 'too_large', 'too_deep', 'name_too_long'] satisfies PackSkipReason[];

/** A pack's report as it travels; names are readable texts. What makes the pack incomplete comes first. */
export function trailerOf(report: PackReport): Trailer {
  const skipped = report.skipped.map(({ path, reason }) => ({ path: readableName(path), reason }));
  const isIncomplete = (entry: { readonly reason: string }): boolean => INCOMPLETE_REASONS.includes(entry.reason);
  const ordered = [...skipped.filter(isIncomplete), ...skipped.filter((entry) => !isIncomplete(entry))];
  if (!report.complete && !ordered.some(isIncomplete)) ordered.unshift({ path: '(beyond the list)', reason: 'unreadable' });
  return {
    ok: true,
    bytes: report.bytes,
    sha256: report.digest,
    entries: report.entries,
    skipped: ordered.slice(0, MAX_TRAILER_PATHS),
    changedWhilePacking: report.changed.slice(0, MAX_TRAILER_PATHS).map((path) => readableName(path)),
    excluded: report.omitted.slice(0, MAX_TRAILER_FOLDERS).map(({ path, files, warn }) => ({
      path: readableName(path),
      files,
      bytes: 0,
      ignored: !warn,
    })),
  };
}
