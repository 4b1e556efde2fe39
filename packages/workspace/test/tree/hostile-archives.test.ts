import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { canonicaliseArchive, readManifestOfBlob, scanTree, storeTree, unpackTree } from '../../src/index.ts';
import { type ArchiveCase, cannotRunArchive, inChunks, runArchiveCase } from './archive-case.ts';
import { temporaryFolder } from './temporary-folder.ts';

const CASES = new URL('../../../../tests/cases/tar/', import.meta.url);
const rows: readonly ArchiveCase[] = JSON.parse(readFileSync(new URL('index.json', CASES), 'utf8'));

// The old tree goes as a whole, so a link in it can lead nothing astray: the archive arrives as it is.
const SAFE_BUT_NOT_EXACT = ['s17-preexisting-link-parent.tar'];

const at = temporaryFolder();
const tally = { safe: 0, exact: 0 };
const exists = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

describe('hostile archives', () => {
  afterAll(() => {
    console.info(`tar cases: ${tally.safe} of ${rows.length} safe, ${tally.exact} exact`);
    expect(tally).toEqual({ safe: rows.length, exact: rows.length - SAFE_BUT_NOT_EXACT.length });
  });

  it.each(rows)('$file ends as one of the safe outcomes, the same for every cut of the stream', async (row) => {
    expect(cannotRunArchive(row)).toBeUndefined();
    const outcome = await runArchiveCase(row, readFileSync(new URL(row.file, CASES)), at());
    expect([row.expect, ...(row.accept ?? [])]).toContain(outcome);
    tally.safe += 1;
    if (outcome === row.expect) tally.exact += 1;
    else expect(SAFE_BUT_NOT_EXACT).toContain(row.file);
  });

  it.each(rows)('$file becomes the same canonical snapshot as its unpacked and its stored tree, or is refused alike', async (row) => {
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
    const stored = storeTree(inChunks(bytes, 4096), at('stored'), options).then(() => scanTree(at('stored')));
    expect(await settled(stored)).toBe(unpacked);
    await rm(at('stored'), { recursive: true, force: true });
    if (exists(at('blob'))) expect((await readManifestOfBlob(at('blob'))).snapshotId).toBe(unpacked);
    expect(readdirSync(at()).sort()).toEqual(exists(at('blob')) ? ['blob', 'dest', 'outside'] : ['dest', 'outside']);
  });
});
