import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ArchiveCase, cannotRunArchive, runArchiveCase } from '../../../packages/workspace/test/tree/archive-case.ts';
import { type CaseAnswer, type CaseResult, judgeCase } from './case-result.ts';

function assertRows(value: unknown, file: string): asserts value is ArchiveCase[] {
  if (!Array.isArray(value)) throw new Error(`${file} is no list of cases`);
  for (const [index, row] of value.entries()) {
    const texts = ['file', 'expect'].filter((field) => typeof row?.[field] !== 'string');
    const lists = ['mustNotExist', 'mustExist'].filter((field) => !Array.isArray(row?.[field]));
    if (texts.length + lists.length > 0) throw new Error(`case ${index} of ${file} has no ${[...texts, ...lists].join(', ')}`);
  }
}

async function runRow(row: ArchiveCase, folder: string): Promise<CaseAnswer> {
  const why = cannotRunArchive(row);
  if (why !== undefined) return { run: false, why };
  const base = await mkdtemp(join(tmpdir(), 'firecrew-cases-'));
  try {
    return { run: true, ended: await runArchiveCase(row, await readFile(join(folder, row.file)), base) };
  } finally {
    await rm(base, { recursive: true, force: true });
  }
}

/** Unpacks every archive that `index.json` of a folder lists. */
export async function runTarFolder(folder: string): Promise<CaseResult[]> {
  const index = join(folder, 'index.json');
  const rows: unknown = JSON.parse(await readFile(index, 'utf8'));
  assertRows(rows, index);
  const results: CaseResult[] = [];
  for (const row of rows) {
    const wanted = { id: row.file, group: row.group ?? 'archives', expect: row.expect, acceptable: row.accept ?? [] };
    results.push(await judgeCase(wanted, () => runRow(row, folder)));
  }
  return results;
}
