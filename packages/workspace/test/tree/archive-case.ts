import assert from 'node:assert/strict';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, link, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unpackTree } from '../../src/index.ts';

interface CheckRow {
  readonly path: string;
  readonly kind?: 'file' | 'dir' | 'symlink';
  readonly content?: string;
  readonly target?: string;
  readonly modeHas?: number;
  readonly modeLacks?: number;
  readonly size?: number;
  readonly ownerIsSelf?: boolean;
  readonly optional?: boolean;
}
interface SetupRow {
  readonly path: string;
  readonly kind: 'file' | 'dir' | 'symlink' | 'hardlink';
  readonly content?: string;
  readonly target?: string;
  readonly mode?: number;
}
/** One row of `index.json` in a folder of hostile archives; `tests/cases/tar/README.md` says what each field means. */
export interface ArchiveCase {
  readonly file: string;
  readonly group: string;
  readonly expect: ArchiveOutcome;
  readonly accept?: readonly ArchiveOutcome[];
  readonly mustNotExist: readonly string[];
  readonly mustExist: readonly string[];
  readonly mustExistHex?: readonly string[];
  readonly limits?: Record<string, number>;
  readonly setup?: readonly SetupRow[];
  readonly checks?: readonly CheckRow[];
}
export type ArchiveOutcome = 'reject' | 'skip-entry' | 'extract';

const ABSOLUTE_CANARY = '/tmp/firecrew-tar-canary';
const CHUNKS = [1, 511, 513, 4096, Number.MAX_SAFE_INTEGER];
const FIELDS = new Set('file group why source expect accept mustNotExist mustExist mustExistHex limits setup checks'.split(' '));
const CHECK_FIELDS = new Set('path kind content target modeHas modeLacks size ownerIsSelf optional'.split(' '));
const LIMITS = new Set(['maxEntries', 'maxDepth', 'maxFileBytes', 'maxTotalBytes', 'maxMetaBytes']);

/** Why a case cannot be run, or undefined: what it asks for and nothing here knows must not count as a pass. */
export function cannotRunArchive(row: ArchiveCase): string | undefined {
  const unknown = [
    ...Object.keys(row).filter((field) => !FIELDS.has(field)),
    ...Object.keys(row.limits ?? {}).filter((field) => !LIMITS.has(field)),
    ...(row.checks ?? []).flatMap((check) => Object.keys(check).filter((field) => !CHECK_FIELDS.has(field))),
  ];
  return unknown.length > 0 ? `there is no field ${unknown.join(', ')}` : undefined;
}

/** The bytes of an archive, cut. */
export async function* inChunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

/** Every name below a folder with type, mode, inode, change time and content. */
function picture(folder: string): string[] {
  const lines: string[] = [];
  const visit = (path: string) => {
    const stats = lstatSync(path);
    const content = stats.isFile() ? readFileSync(path, 'hex') : stats.isSymbolicLink() ? readlinkSync(path) : '';
    lines.push(`${path} ${stats.mode.toString(8)} ${stats.ino} ${stats.mtimeMs} ${content}`);
    if (stats.isDirectory()) for (const name of readdirSync(path).sort()) visit(join(path, name));
  };
  visit(folder);
  return lines;
}

const exists = (path: string | Buffer) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** The layout that a case is unpacked into. */
class Layout {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  at(path = ''): string {
    return path.startsWith('/') ? path : join(this.#base, path);
  }

  async make(row: ArchiveCase): Promise<void> {
    for (const name of ['dest', 'dest-evil', 'outside']) await mkdir(this.at(name));
    await mkdir(ABSOLUTE_CANARY, { recursive: true });
    await writeFile(this.at('outside/secret.txt'), 'secret\n', { mode: 0o600 });
    await writeFile(join(ABSOLUTE_CANARY, 'secret.txt'), 'secret\n', { mode: 0o600 });
    for (const item of row.setup ?? []) {
      const path = this.at(item.path);
      if (item.kind === 'dir') await mkdir(path);
      else if (item.kind === 'symlink') await symlink(item.target ?? '', path);
      else if (item.kind === 'hardlink') await link(this.at(item.target ?? ''), path);
      else await writeFile(path, item.content ?? '');
      if (item.mode !== undefined) await chmod(path, item.mode);
    }
  }

  async clear(): Promise<void> {
    for (const name of ['dest', 'dest-evil', 'outside']) await rm(this.at(name), { recursive: true, force: true });
    await rm(ABSOLUTE_CANARY, { recursive: true, force: true });
  }

  canaries(): string[] {
    const folders = [this.at('outside'), this.at('dest-evil'), ABSOLUTE_CANARY];
    return [...folders.flatMap(picture), ...readdirSync(this.at()).sort()];
  }

  assertArrived(row: ArchiveCase): void {
    for (const path of row.mustExist) assert.ok(exists(this.at(path)), `${path} is not there`);
    for (const hex of row.mustExistHex ?? []) {
      const path = Buffer.concat([Buffer.from(`${this.at()}/`), Buffer.from(hex, 'hex')]);
      assert.ok(exists(path), `${hex} is not there`);
    }
    for (const check of row.checks ?? []) this.#assertCheck(check);
  }

  #assertCheck(row: CheckRow): void {
    const path = this.at(row.path);
    if (row.optional === true && !exists(path)) return;
    const stats = lstatSync(path);
    if (row.kind === 'file') assert.ok(stats.isFile(), `${row.path} is no file`);
    if (row.kind === 'dir') assert.ok(stats.isDirectory(), `${row.path} is no folder`);
    if (row.kind === 'symlink') assert.ok(stats.isSymbolicLink(), `${row.path} is no link`);
    if (row.content !== undefined) assert.equal(readFileSync(path, 'utf8'), row.content);
    if (row.target !== undefined) assert.equal(readlinkSync(path), row.target);
    if (row.size !== undefined) assert.equal(stats.size, row.size);
    assert.equal(stats.mode & (row.modeHas ?? 0), row.modeHas ?? 0, `mode of ${row.path}`);
    assert.equal(stats.mode & (row.modeLacks ?? 0), 0, `mode of ${row.path}`);
    assert.equal(stats.uid, process.getuid?.(), `owner of ${row.path}`);
  }
}

async function unpack(row: ArchiveCase, bytes: Uint8Array, chunkBytes: number, dest: string): Promise<ArchiveOutcome> {
  const carryOver = row.setup?.some(({ path }) => path === 'dest/.git') === true ? ['.git'] : [];
  try {
    const unpacked = await unpackTree(inChunks(bytes, chunkBytes), dest, { limits: row.limits ?? {}, carryOver });
    return unpacked.skippedCount > 0 ? 'skip-entry' : 'extract';
  } catch (error) {
    const refused = error instanceof Error && 'code' in error && error.code === 'archive_refused';
    if (!refused) throw error;
    return 'reject';
  }
}

/** Unpacks an archive below an empty folder, whole and in four cuts; gives how all of them ended, throws when one was not safe. */
export async function runArchiveCase(row: ArchiveCase, bytes: Uint8Array, base: string): Promise<ArchiveOutcome> {
  const layout = new Layout(base);
  const outcomes: ArchiveOutcome[] = [];
  for (const chunkBytes of CHUNKS) {
    try {
      await layout.make(row);
      const before = layout.canaries();
      const destBefore = picture(layout.at('dest'));
      const outcome = await unpack(row, bytes, chunkBytes, layout.at('dest'));
      outcomes.push(outcome);
      assert.deepEqual(layout.canaries(), before, 'something outside the destination changed');
      for (const path of row.mustNotExist) assert.ok(!exists(layout.at(path)), `${path} is there`);
      if (outcome === 'reject') assert.deepEqual(picture(layout.at('dest')), destBefore, 'a refused archive changed the destination');
      else layout.assertArrived(row);
    } finally {
      await layout.clear();
    }
  }
  assert.equal(new Set(outcomes).size, 1, `the cut decides: ${outcomes.join()}`);
  return outcomes[0] ?? 'reject';
}
