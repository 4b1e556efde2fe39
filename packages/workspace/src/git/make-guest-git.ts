import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createZstdCompress } from 'node:zlib';
import { type ManifestEntry, tarEnd, tarPadding, writeTarHeader } from '@firecrew/artifact-capture';
import { isSafeBranchName } from '@firecrew/delivery';
import { pathKey, textOf } from './git-records.ts';
import { treeOf } from './import-changes.ts';
import { listTree } from './list-tree.ts';
import { GIT_LOCAL_TIMEOUT_MS, GIT_PACK_TIMEOUT_MS, GIT_SMALL_OUTPUT_BYTES, runGit } from './run-git.ts';
import { withScratchFolder } from './scratch-folder.ts';

/** Bytes of history that travel into a guest in full. */
export const GIT_HISTORY_MAX = 200 * 1024 * 1024;
/** Commits of history that travel when the whole is larger. */
export const GIT_HISTORY_DEPTH = 50;

/** What a guest's `.git` is made of. */
export interface GuestGitOptions {
  readonly maxBytes?: number;
  /** Name of the branch HEAD stands on; `main` when it is none. */
  readonly branch?: string;
  /** The tree the guest gets: tracked paths that are not in it are marked as not checked out, so that they do not show as deleted. */
  readonly manifest?: Iterable<ManifestEntry>;
  /** `zstd` by default. */
  readonly compression?: 'zstd' | 'none';
}

/** What was written. */
export interface GuestGit {
  readonly bytes: number;
  readonly history: 'full' | 'depth';
  readonly branch: string;
  /** Tracked paths the guest does not get. */
  readonly absentPaths: number;
}

const LIMITS = { timeoutMs: GIT_LOCAL_TIMEOUT_MS, maxOutputBytes: GIT_SMALL_OUTPUT_BYTES } as const;

/**
 * Writes the content of a guest's `.git` as a tar of paths relative to it: `commit` with its history on a branch, an index that matches it, and no
 * remotes, hooks, logs or credentials. Throws CodedError `base_missing` and those of `runGit`.
 */
export async function makeGuestGit(gitDir: string, commit: string, outFile: string, options: GuestGitOptions = {}): Promise<GuestGit> {
  await treeOf(gitDir, commit);
  const branch = options.branch !== undefined && isSafeBranchName(options.branch) ? options.branch : 'main';
  return await withScratchFolder(async (folder) => {
    const guest = join(folder, 'git');
    const full = (await historyBytes(gitDir, commit)) <= (options.maxBytes ?? GIT_HISTORY_MAX);
    await initEmpty(guest, branch, commit.length === 64 ? 'sha256' : 'sha1');
    await fetchInto(guest, gitDir, commit, full ? undefined : GIT_HISTORY_DEPTH);
    await runGit(['update-ref', `refs/heads/${branch}`, commit], { gitDir: guest, ...LIMITS });
    await runGit(['read-tree', commit], { gitDir: guest, ...LIMITS });
    const absentPaths = options.manifest === undefined ? 0 : await markAbsent(guest, commit, options.manifest);
    return { bytes: await writeTar(guest, outFile, options.compression ?? 'zstd'), history: full ? 'full' : 'depth', branch, absentPaths };
  });
}

async function historyBytes(gitDir: string, commit: string): Promise<number> {
  const answer = await runGit(['rev-list', '--objects', '--disk-usage', '--end-of-options', commit, '--'], {
    gitDir,
    ...LIMITS,
    timeoutMs: GIT_PACK_TIMEOUT_MS,
  });
  return Number(textOf(answer.stdout));
}

async function initEmpty(guest: string, branch: string, format: 'sha1' | 'sha256'): Promise<void> {
  await mkdir(join(guest, 'objects', 'pack'), { recursive: true });
  await mkdir(join(guest, 'refs', 'heads'), { recursive: true });
  await writeFile(join(guest, 'HEAD'), `ref: refs/heads/${branch}\n`);
  const sha1 = '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n';
  const sha256 = `${sha1.replace('= 0', '= 1')}[extensions]\n\tobjectFormat = sha256\n`;
  await writeFile(join(guest, 'config'), format === 'sha1' ? sha1 : sha256);
}

async function fetchInto(guest: string, gitDir: string, commit: string, depth: number | undefined): Promise<void> {
  const cut = depth === undefined ? ['--update-shallow'] : [`--depth=${depth}`];
  const args = ['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--no-auto-maintenance', ...cut];
  await runGit([...args, '--', gitDir, commit], {
    gitDir: guest,
    ...LIMITS,
    timeoutMs: GIT_PACK_TIMEOUT_MS,
    protocols: ['file'],
  });
}

async function markAbsent(guest: string, commit: string, manifest: Iterable<ManifestEntry>): Promise<number> {
  const present = new Set<string>();
  for (const entry of manifest) present.add(pathKey(entry.path));
  const absent = [...(await listTree(guest, commit)).values()].filter((entry) => !present.has(pathKey(entry.path)));
  if (absent.length === 0) return 0;
  const input = Buffer.concat(absent.flatMap((entry) => [entry.path, Buffer.from([0])]));
  await runGit(['update-index', '--skip-worktree', '-z', '--stdin'], { gitDir: guest, workTree: guest, input, ...LIMITS });
  return absent.filter((entry) => entry.mode !== '160000').length;
}

/** Every file and folder below `root`, folders first, in byte order. */
async function filesBelow(root: string, prefix: string): Promise<{ readonly name: string; readonly folder: boolean }[]> {
  const found: { name: string; folder: boolean }[] = [];
  for (const entry of (await readdir(join(root, prefix), { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
    found.push({ name, folder: entry.isDirectory() });
    if (entry.isDirectory()) found.push(...(await filesBelow(root, name)));
  }
  return found;
}

const LEFT_BEHIND = /^(?:hooks|logs|info|branches|description|FETCH_HEAD|ORIG_HEAD)(?:\/|$)|\.(?:lock|keep)$/;

async function* tarOf(guest: string): AsyncGenerator<Uint8Array> {
  for (const { name, folder } of await filesBelow(guest, '')) {
    if (LEFT_BEHIND.test(name)) continue;
    const path = Buffer.from(name);
    if (folder) {
      yield writeTarHeader({ path, kind: 'directory', size: 0 });
      continue;
    }
    const { size } = await stat(join(guest, name));
    yield writeTarHeader({ path, kind: 'file', size });
    yield* createReadStream(join(guest, name)) as AsyncIterable<Buffer>;
    yield tarPadding(size);
  }
  yield tarEnd();
}

async function writeTar(guest: string, outFile: string, compression: 'zstd' | 'none'): Promise<number> {
  const out = createWriteStream(outFile, { flags: 'wx', mode: 0o600 });
  const source = Readable.from(tarOf(guest), { objectMode: false });
  // The bulk is a pack, which is compressed already.
  if (compression === 'zstd') await pipeline(source, createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 1 } }), out);
  else await pipeline(source, out);
  return (await stat(outFile)).size;
}
