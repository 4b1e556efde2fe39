import { readableName } from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import type { Trailer } from '@firecrew/protocol';
import type { ArchiveTrailer, PackReport, PackSkipReason } from '@firecrew/workspace';
import { folderBytes, MAX_MEASURED_ENTRIES } from './folder-bytes.ts';

/** Paths in each list of a trailer, and left-out folders, at most. */
export const MAX_TRAILER_PATHS = 1000;
export const MAX_TRAILER_FOLDERS = 10_000;

/** Reasons for which a path that belongs to the tree is missing from the archive. */
export const INCOMPLETE_REASONS: readonly string[] = ['unreadable', 'too_large', 'too_deep', 'name_too_long'] satisfies PackSkipReason[];

/** A pack's report as it travels; names are readable texts. What makes the pack incomplete comes first; the sizes of left-out folders are measured now. */
export async function trailerOf(root: string, report: PackReport): Promise<Trailer> {
  const skipped = report.skipped.map(({ path, reason }) => ({ path: readableName(path), reason }));
  const isIncomplete = (entry: { readonly reason: string }): boolean => INCOMPLETE_REASONS.includes(entry.reason);
  const ordered = [...skipped.filter(isIncomplete), ...skipped.filter((entry) => !isIncomplete(entry))];
  if (!report.complete && !ordered.some(isIncomplete)) ordered.unshift({ path: '(beyond the list)', reason: 'unreadable' });
  const excluded: Trailer['excluded'] = [];
  const budget = { entries: MAX_MEASURED_ENTRIES };
  for (const { path, files, warn } of report.omitted.slice(0, MAX_TRAILER_FOLDERS)) {
    const bytes = await folderBytes(Buffer.concat([Buffer.from(`${root}/`), path]), budget);
    excluded.push({ path: readableName(path), files, bytes, ignored: !warn });
  }
  return {
    ok: true,
    bytes: report.bytes,
    sha256: report.digest,
    entries: report.entries,
    skipped: ordered.slice(0, MAX_TRAILER_PATHS),
    changedWhilePacking: report.changed.slice(0, MAX_TRAILER_PATHS).map((path) => readableName(path)),
    excluded,
  };
}

/** Holds what was received of a tree against what its sender said. Throws `transfer_cut` when they differ. */
export function checkReceived(path: string, said: Trailer, { entries, bytes, digest }: ArchiveTrailer): void {
  if (said.bytes === bytes && said.entries === entries && said.sha256 === digest) return;
  throw new CodedError('transfer_cut', `${bytes} bytes of ${path} arrived; ${said.bytes} were sent, or others.`, {
    id: path,
    action: 'Collect the tree again.',
  });
}
