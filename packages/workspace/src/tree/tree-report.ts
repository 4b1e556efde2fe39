import type { SkipReason } from '@firecrew/artifact-capture';

/** Paths kept in each list of a report; the counts go on. */
export const MAX_REPORTED_PATHS = 1000;
/** Files counted in one left-out folder, at most. */
export const MAX_COUNTED_FILES = 100_000;

/** Why a path was not packed. `unreadable`, `too_large`, `too_deep` and `name_too_long` make the pack incomplete. */
export type PackSkipReason = SkipReason | 'unreadable' | 'vanished' | 'too_large' | 'too_deep' | 'name_too_long';

/** A path that was dropped. */
export interface SkippedPath<Reason extends string = PackSkipReason> {
  readonly path: Buffer;
  readonly reason: Reason;
}

/** A folder left out by the exclusion rule. */
export interface OmittedFolder {
  readonly path: Buffer;
  /** What allowed it; `warn` is true when the repository's own ignore rules do not cover the folder. */
  readonly rule: string;
  readonly warn: boolean;
  /** Files and links below it, counted up to {@link MAX_COUNTED_FILES}. */
  readonly files: number;
  readonly countIsExact: boolean;
}

/** Proof that an archive arrived whole: what the packer says after it. */
export interface ArchiveTrailer {
  readonly entries: number;
  /** Bytes of the tar stream. */
  readonly bytes: number;
  /** Snapshot id of the tree in it: of every path, mode, size and content. */
  readonly digest: string;
}

/** What a pack did. Lists hold at most {@link MAX_REPORTED_PATHS} paths. */
export interface PackReport extends ArchiveTrailer {
  readonly files: number;
  readonly links: number;
  readonly emptyFolders: number;
  readonly contentBytes: number;
  readonly skipped: readonly SkippedPath[];
  readonly skippedCount: number;
  /** Files that changed while they were read; their size is the one at open. */
  readonly changed: readonly Buffer[];
  readonly changedCount: number;
  readonly omitted: readonly OmittedFolder[];
  readonly omittedCount: number;
  /** False when something that belongs to the tree could not be read or was out of bounds. */
  readonly complete: boolean;
}

/** A list that keeps the first {@link MAX_REPORTED_PATHS} and counts all. */
export class BoundedList<Item> {
  readonly items: Item[] = [];
  count = 0;

  add(item: Item): void {
    this.count += 1;
    if (this.items.length < MAX_REPORTED_PATHS) this.items.push(item);
  }
}

const INCOMPLETE: readonly string[] = ['unreadable', 'too_large', 'too_deep', 'name_too_long'] satisfies PackSkipReason[];

/** Gathers a {@link PackReport} while a tree is walked. */
export class PackLog {
  readonly skipped = new BoundedList<SkippedPath>();
  readonly changed = new BoundedList<Buffer>();
  readonly omitted = new BoundedList<OmittedFolder>();
  files = 0;
  links = 0;
  emptyFolders = 0;
  contentBytes = 0;
  complete = true;

  skip(path: Buffer, reason: PackSkipReason): void {
    this.skipped.add({ path, reason });
    if (INCOMPLETE.includes(reason)) this.complete = false;
  }

  report(trailer: Omit<ArchiveTrailer, 'entries'>): PackReport {
    const { files, links, emptyFolders, contentBytes, skipped, changed, omitted, complete } = this;
    return {
      ...trailer,
      entries: files + links + emptyFolders,
      files,
      links,
      emptyFolders,
      contentBytes,
      skipped: skipped.items,
      skippedCount: skipped.count,
      changed: changed.items,
      changedCount: changed.count,
      omitted: omitted.items,
      omittedCount: omitted.count,
      complete,
    };
  }
}
