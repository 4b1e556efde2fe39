// Runs a file of cases in the published format against the product: `npm run cases -- egress FILE.json`, `npm run cases -- tar FOLDER`.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { CaseResult } from './runner/case-result.ts';
import { caseReport, tallyOf } from './runner/report.ts';
import { runEgressFile } from './runner/run-egress.ts';
import { runTarFolder } from './runner/run-tar.ts';

const USAGE = `npm run cases                          the published cases, all kinds
npm run cases -- egress [FILE.json]    a file of egress cases
npm run cases -- tar [FOLDER]          a folder of archives with its index.json
   --json FILE                         write every result there`;

const own = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const READERS = new Map<string, { run: (path: string) => Promise<CaseResult[]>; published: string }>([
  ['egress', { run: runEgressFile, published: own('egress/cases.json') }],
  ['tar', { run: runTarFolder, published: own('tar') }],
]);

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'string' }, help: { type: 'boolean' } } });
  const [kind, path, ...more] = positionals;
  const kinds = kind === undefined ? [...READERS.keys()] : [kind];
  if (values.help === true || more.length > 0 || !kinds.every((name) => READERS.has(name))) {
    console.error(USAGE);
    return 2;
  }
  const all: Record<string, readonly CaseResult[]> = {};
  for (const name of kinds) {
    const reader = READERS.get(name);
    const results = (await reader?.run(path ?? reader.published)) ?? [];
    console.log(`${name} cases of ${path ?? 'tests/cases'}\n${caseReport(results)}\n`);
    all[name] = results;
  }
  if (values.json !== undefined) await writeFile(values.json, `${JSON.stringify(all, undefined, 1)}\n`);
  const { run, safe } = tallyOf(Object.values(all).flat());
  return run > 0 && safe === run ? 0 : 1;
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  return 2;
});
