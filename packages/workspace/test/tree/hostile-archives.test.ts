import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, link, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { canonicaliseArchive, readManifestOfBlob, unpackTree } from '../../src/index.ts';
import { temporaryFolder } from './temporary-folder.ts';

interface CheckRow {
  readonly path: string;
  readonly kind?: 'file' | 'dir' | 'symlink';
  readonly content?: string;
  readonly target?: string;
  readonly modeHas?: number;
  readonly modeLacks?: number;
  readonly uid?: string;
  readonly optional?: boolean;
}
interface SetupRow {
  readonly path: string;
  readonly kind: 'file' | 'dir' | 'symlink' | 'hardlink';
  readonly content?: string;
  readonly target?: string;
  readonly mode?: number;
}
interface CaseRow {
  readonly file: string;
  readonly expect: Outcome;
  readonly accept?: readonly Outcome[];
  readonly mustNotExist: readonly string[];
  readonly mustExist: readonly string[];
  readonly mustExistHex?: readonly string[];
  readonly limits?: Record<string, number>;
  readonly setup?: readonly SetupRow[];
  readonly checks?: readonly CheckRow[];
}
type Outcome = 'reject' | 'skip-entry' | 'extract';

const CASES = new URL('../../../../tests/cases/tar/', import.meta.url);
const rows: readonly CaseRow[] = JSON.parse(readFileSync(new URL('index.json', CASES), 'utf8'));
const ABSOLUTE_CANARY = '/tmp/firecrew-tar-canary';
const CHUNKS = [1, 511, 513, 4096, Number.MAX_SAFE_INTEGER];

// The old tree goes as a whole, so a link in it can lead nothing astray: the archive arrives as it is.
const SAFE_BUT_NOT_EXACT = ['s17-preexisting-link-parent.tar'];

const at = temporaryFolder();
const tally = { safe: 0, exact: 0 };

async function prepare(row: CaseRow): Promise<void> {
  await mkdir(at('dest'));
  await mkdir(at('dest-evil'));
  await mkdir(at('outside'));
  await mkdir(ABSOLUTE_CANARY, { recursive: true });
  await writeFile(at('outside/secret.txt'), 'secret\n', { mode: 0o600 });
  await writeFile(join(ABSOLUTE_CANARY, 'secret.txt'), 'secret\n', { mode: 0o600 });
  for (const item of row.setup ?? []) {
    if (item.kind === 'dir') await mkdir(at(item.path));
    else if (item.kind === 'symlink') await symlink(item.target ?? '', at(item.path));
    else if (item.kind === 'hardlink') await link(at(item.target ?? ''), at(item.path));
    else await writeFile(at(item.path), item.content ?? '');
    if (item.mode !== undefined) await chmod(at(item.path), item.mode);
  }
}

/** Every name below a folder with type, mode, inode, change time and content. */
function picture(folder: string, withTimes: boolean): string[] {
  const lines: string[] = [];
  const visit = (path: string) => {
    const stats = lstatSync(path);
    const identity = withTimes ? ` ${stats.ino} ${stats.mtimeMs}` : '';
    const content = stats.isFile() ? readFileSync(path, 'hex') : stats.isSymbolicLink() ? readlinkSync(path) : '';
    lines.push(`${path} ${stats.mode.toString(8)}${identity} ${content}`);
    if (stats.isDirectory()) for (const name of readdirSync(path).sort()) visit(join(path, name));
  };
  visit(folder);
  return lines;
}

const canaries = () => [
  ...picture(at('outside'), true),
  ...picture(at('dest-evil'), true),
  ...picture(ABSOLUTE_CANARY, true),
  ...readdirSync(at()).sort(),
];

async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

const exists = (path: string | Buffer) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
const resolvePath = (path: string) => (path.startsWith('/') ? path : at(path));

function check(row: CheckRow): void {
  const path = at(row.path);
  if (row.optional === true && !exists(path)) return;
  const stats = lstatSync(path);
  if (row.kind === 'file') expect(stats.isFile()).toBe(true);
  if (row.kind === 'dir') expect(stats.isDirectory()).toBe(true);
  if (row.kind === 'symlink') expect(stats.isSymbolicLink()).toBe(true);
  if (row.content !== undefined) expect(readFileSync(path, 'utf8')).toBe(row.content);
  if (row.target !== undefined) expect(readlinkSync(path)).toBe(row.target);
  expect(stats.mode & (row.modeHas ?? 0)).toBe(row.modeHas ?? 0);
  expect(stats.mode & (row.modeLacks ?? 0)).toBe(0);
  expect(stats.uid).toBe(process.getuid?.());
}

async function outcomeOf(row: CaseRow, chunkBytes: number): Promise<Outcome> {
  const bytes = readFileSync(new URL(row.file, CASES));
  const carryOver = row.setup?.some(({ path }) => path === 'dest/.git') === true ? ['.git'] : [];
  try {
    const unpacked = await unpackTree(inChunks(bytes, chunkBytes), at('dest'), { limits: row.limits ?? {}, carryOver });
    return unpacked.skippedCount > 0 ? 'skip-entry' : 'extract';
  } catch (error) {
    expect(error).toMatchObject({ code: 'archive_refused' });
    return 'reject';
  }
}

describe('hostile archives', () => {
  afterAll(async () => {
    await rm(ABSOLUTE_CANARY, { recursive: true, force: true });
    console.info(`tar cases: ${tally.safe} of ${rows.length} safe, ${tally.exact} exact`);
    expect(tally).toEqual({ safe: rows.length, exact: rows.length - SAFE_BUT_NOT_EXACT.length });
  });

  it.each(rows)('$file ends as one of the safe outcomes, the same for every cut of the stream', async (row) => {
    const outcomes: Outcome[] = [];
    for (const chunkBytes of CHUNKS) {
      await prepare(row);
      const before = canaries();
      const destBefore = picture(at('dest'), true);
      const outcome = await outcomeOf(row, chunkBytes);
      outcomes.push(outcome);
      expect(canaries()).toEqual(before);
      for (const path of row.mustNotExist) expect(exists(resolvePath(path)), path).toBe(false);
      if (outcome === 'reject') expect(picture(at('dest'), true)).toEqual(destBefore);
      else {
        for (const path of row.mustExist) expect(exists(resolvePath(path)), path).toBe(true);
        for (const hex of row.mustExistHex ?? [])
          expect(exists(Buffer.concat([Buffer.from(`${at()}/`), Buffer.from(hex, 'hex')]))).toBe(true);
        for (const item of row.checks ?? []) check(item);
      }
      for (const name of ['dest', 'dest-evil', 'outside']) await rm(at(name), { recursive: true });
    }
    expect(new Set(outcomes).size, outcomes.join()).toBe(1);
    const outcome = outcomes[0];
    expect([row.expect, ...(row.accept ?? [])]).toContain(outcome);
    tally.safe += 1;
    if (outcome === row.expect) tally.exact += 1;
    else expect(SAFE_BUT_NOT_EXACT).toContain(row.file);
  });

  it.each(rows)('$file becomes the same canonical snapshot as its unpacked tree, or is refused alike', async (row) => {
    await mkdir(at('dest'));
    await mkdir(at('outside'));
    const bytes = readFileSync(new URL(row.file, CASES));
    const options = { limits: row.limits ?? {} };
    const settled = async (work: Promise<{ snapshotId: string }>) =>
      work.then(
        ({ snapshotId }) => snapshotId,
        (error: Error) => error.message,
      );
    const unpacked = await settled(unpackTree(inChunks(bytes, 4096), at('dest'), options));
    const canonical = await settled(canonicaliseArchive(inChunks(bytes, 4096), at('blob'), options));
    expect(canonical).toBe(unpacked);
    if (exists(at('blob'))) expect((await readManifestOfBlob(at('blob'))).snapshotId).toBe(unpacked);
    expect(readdirSync(at()).sort()).toEqual(exists(at('blob')) ? ['blob', 'dest', 'outside'] : ['dest', 'outside']);
  });
});
