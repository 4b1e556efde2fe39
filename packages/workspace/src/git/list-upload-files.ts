import { CodedError } from '@firecrew/base';
import { decideFileUpload, type FileStanding, type LeftOutReason, type SecretReason } from '@firecrew/delivery';
import { keyPath, malformed, pathKey, splitRecords } from './git-records.ts';
import type { LocalRepository } from './inspect-repository.ts';
import { parseStatus, type WorkingTreeStatus } from './read-status.ts';
import { GIT_LISTING_MAX_BYTES, GIT_LOCAL_TIMEOUT_MS, runGit } from './run-git.ts';
import { type ShadowPlace, withShadow } from './shadow-repository.ts';

/** Left-out paths that are named; the counts are of all. */
export const MAX_LEFT_OUT_NAMED = 500;

/** What a person asked to be sent though it is ignored or secret-shaped: files or folders, relative to the root. */
export interface UploadChoice {
  readonly include?: readonly string[];
  readonly includeSecret?: readonly string[];
}

/** One file or link that travels. */
export interface UploadFile {
  readonly path: Buffer;
  readonly standing: FileStanding;
  /** What it looks like a holder of; the record names these. */
  readonly secret?: SecretReason;
}

/** One path that stays; a folder ends in `/`. */
export interface LeftOutFile {
  readonly path: Buffer;
  readonly reason: LeftOutReason | 'nested_repository';
  readonly secret?: SecretReason;
}

/** What of a working tree travels, what stays, and how it differs from HEAD. */
export interface UploadList {
  /** In byte order. */
  readonly files: readonly UploadFile[];
  readonly leftOut: readonly LeftOutFile[];
  readonly leftOutCounts: Readonly<Record<LeftOutFile['reason'], number>>;
  /** Tracked paths that are not on disk because the checkout is sparse. */
  readonly sparsePaths: number;
  readonly submodules: readonly Buffer[];
  /** Names of filters that attributes of the tree ask for, such as `lfs`; none of them is run. */
  readonly filters: readonly string[];
  readonly lfs: boolean;
  /** What a synthetic base commit holds beyond HEAD; both empty for a clean tree. */
  readonly synthetic: { readonly changed: readonly Buffer[]; readonly removed: readonly Buffer[] };
  /** Their number. */
  readonly dirtyPaths: number;
}

const LISTING = { timeoutMs: GIT_LOCAL_TIMEOUT_MS, maxOutputBytes: GIT_LISTING_MAX_BYTES } as const;

/**
 * Lists what of a person's working tree is sent. Hooks, file monitors and filters of the repository are never run.
 * Throws CodedError `include_outside`, `include_not_found`.
 */
export async function listUploadFiles(repository: LocalRepository, choice: UploadChoice = {}): Promise<UploadList> {
  const include = (choice.include ?? []).map(normalInclude);
  const includeSecret = (choice.includeSecret ?? []).map(normalInclude);
  return withShadow(repository, async (place) => {
    const status = await readStatus(place);
    const index = await readIndex(place);
    const asked = await listIgnored(place, [...include, ...includeSecret]);
    const found = collect(status, index, asked, include, includeSecret);
    const filters = await readFilters(place, [...index.tracked]);
    return { ...found, sparsePaths: index.sparse, submodules: index.submodules, filters, lfs: filters.includes('lfs') };
  });
}

function normalInclude(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (path.startsWith('/') || parts.includes('..') || parts.length === 0 || path.includes('\0')) {
    throw new CodedError('include_outside', `${JSON.stringify(path)} is no path below the repository`, {
      action: 'Name a path relative to its root.',
    });
  }
  return Buffer.from(parts.join('/')).toString('latin1');
}

function isNamed(key: string, names: readonly string[]): boolean {
  return names.some((name) => key === name || key.startsWith(`${name}/`));
}

async function readStatus(place: ShadowPlace): Promise<WorkingTreeStatus> {
  const args = ['status', '--porcelain=v2', '-z', '--no-renames', '--untracked-files=all', '--ignored=matching', '--ignore-submodules=all'];
  return parseStatus((await runGit(args, { ...place, ...LISTING })).stdout);
}

interface IndexListing {
  readonly tracked: ReadonlySet<string>;
  readonly submodules: readonly Buffer[];
  readonly sparse: number;
}

async function readIndex(place: ShadowPlace): Promise<IndexListing> {
  const tracked = new Set<string>();
  const submodules: Buffer[] = [];
  let sparse = 0;
  for (const record of splitRecords((await runGit(['ls-files', '-z', '-s', '-t'], { ...place, ...LISTING })).stdout)) {
    const [, tag, mode, path] = /^(\S) ([0-7]{6}) [0-9a-f]+ [0-3]\t([\s\S]+)$/.exec(pathKey(record)) ?? [];
    if (tag === undefined || mode === undefined || path === undefined) throw malformed('a line of ls-files is not well-formed');
    if (mode === '160000') submodules.push(keyPath(path));
    else if (tag === 'S') sparse += 1;
    else tracked.add(path);
  }
  return { tracked, submodules, sparse };
}

async function listIgnored(place: ShadowPlace, names: readonly string[]): Promise<ReadonlySet<string>> {
  if (names.length === 0) return new Set();
  const operands = names.map((name) => keyPath(name).toString('utf8'));
  const { stdout } = await runGit(['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--', ...operands], {
    ...place,
    ...LISTING,
  });
  return new Set(splitRecords(stdout).map(pathKey));
}

async function readFilters(place: ShadowPlace, tracked: readonly string[]): Promise<string[]> {
  if (tracked.length === 0) return [];
  const input = Buffer.from(tracked.map((key) => `${key}\0`).join(''), 'latin1');
  const fields = splitRecords((await runGit(['check-attr', '-z', '--stdin', 'filter'], { ...place, ...LISTING, input })).stdout);
  const names = new Set<string>();
  for (let at = 2; at < fields.length; at += 3) names.add(fields[at]?.toString('utf8') ?? '');
  return [...names].filter((name) => !['', 'unspecified', 'unset', 'set'].includes(name)).sort();
}

function standingsOf(status: WorkingTreeStatus, index: IndexListing, asked: ReadonlySet<string>): Map<string, FileStanding> {
  const standings = new Map<string, FileStanding>();
  for (const key of status.ignored) standings.set(key, 'ignored');
  for (const key of asked) standings.set(key, 'ignored');
  for (const key of status.untracked) standings.set(key, 'untracked');
  for (const key of index.tracked) if (!status.removed.has(key)) standings.set(key, status.changed.has(key) ? 'changed' : 'committed');
  return standings;
}

function collect(
  status: WorkingTreeStatus,
  index: IndexListing,
  asked: ReadonlySet<string>,
  include: readonly string[],
  includeSecret: readonly string[],
): Pick<UploadList, 'files' | 'leftOut' | 'leftOutCounts' | 'synthetic' | 'dirtyPaths'> {
  const files: UploadFile[] = [];
  const leftOut: LeftOutFile[] = [];
  const leftOutCounts: Record<LeftOutFile['reason'], number> = { ignored: 0, secret_shaped: 0, nested_repository: 0 };
  const leave = (file: LeftOutFile): void => {
    leftOutCounts[file.reason] += 1;
    if (leftOut.length < MAX_LEFT_OUT_NAMED) leftOut.push(file);
  };
  const standings = standingsOf(status, index, asked);
  checkNamed([...include, ...includeSecret], standings);
  for (const [key, standing] of [...standings].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const path = keyPath(key);
    if (key.endsWith('/')) {
      // An ignored folder of which files were asked for is told by those files.
      if (standing !== 'ignored') leave({ path, reason: 'nested_repository' });
      else if (!isNamed(key.slice(0, -1), [...include, ...includeSecret])) leave({ path, reason: 'ignored' });
      continue;
    }
    const decision = decideFileUpload({ path, standing, included: isNamed(key, include), secretIncluded: isNamed(key, includeSecret) });
    const secret = decision.secret === undefined ? {} : { secret: decision.secret };
    if (decision.verdict === 'upload') files.push({ path, standing, ...secret });
    else leave({ path, reason: decision.reason, ...secret });
  }
  const changed = files.filter((file) => file.standing === 'changed' || file.standing === 'untracked').map((file) => file.path);
  const removed = [...status.removed].sort().map(keyPath);
  return { files, leftOut, leftOutCounts, synthetic: { changed, removed }, dirtyPaths: changed.length + removed.length };
}

function checkNamed(names: readonly string[], standings: ReadonlyMap<string, FileStanding>): void {
  for (const name of names) {
    if (standings.has(name) || [...standings.keys()].some((key) => isNamed(key, [name]))) continue;
    throw new CodedError('include_not_found', `${JSON.stringify(keyPath(name).toString('utf8'))} is no file of the working tree`, {
      action: 'Name a file or folder that exists, relative to the root of the repository.',
    });
  }
}
