import { readFile } from 'node:fs/promises';
import type { EgressCase } from '../../../packages/egress-proxy/test/cases/case-format.ts';
import { runEgressCase } from '../../../packages/egress-proxy/test/cases/run-egress-case.ts';
import { runRouteCase } from '../../../packages/model-proxy/test/cases/run-route-case.ts';
import { type CaseResult, judgeCase } from './case-result.ts';

const REQUIRED = ['id', 'group', 'kind', 'input', 'expect'] as const;

function assertRows(value: unknown, file: string): asserts value is EgressCase[] {
  if (!Array.isArray(value)) throw new Error(`${file} is no list of cases`);
  for (const [index, row] of value.entries()) {
    const missing = REQUIRED.filter((field) => typeof row?.[field] !== 'string');
    if (missing.length > 0) throw new Error(`case ${index} of ${file} has no ${missing.join(', ')}`);
    if (!Array.isArray(row.allowList)) throw new Error(`case ${row.id} of ${file} has no allowList`);
  }
}

/** Runs every case of a file against a real proxy: the model route for its own cases, the egress proxy for the rest. */
export async function runEgressFile(file: string): Promise<CaseResult[]> {
  const rows: unknown = JSON.parse(await readFile(file, 'utf8'));
  assertRows(rows, file);
  const results: CaseResult[] = [];
  for (const row of rows) {
    const run = row.target === 'model-route' ? runRouteCase : runEgressCase;
    results.push(await judgeCase({ ...row, acceptable: row.acceptable ?? [] }, () => run(row)));
  }
  return results;
}
