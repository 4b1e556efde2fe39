import type { CaseResult } from './case-result.ts';

/** Counts of one group, or of all. */
export interface Tally {
  readonly run: number;
  readonly safe: number;
  readonly exact: number;
  readonly notRun: number;
}

/** Counts results; one that was not run is in no other count. */
export function tallyOf(results: readonly CaseResult[]): Tally {
  const count = (...states: CaseResult['state'][]) => results.filter(({ state }) => states.includes(state)).length;
  const notRun = count('not_run');
  return { run: results.length - notRun, safe: count('safe', 'exact'), exact: count('exact'), notRun };
}

function line(name: string, { run, safe, exact, notRun }: Tally, width: number): string {
  const left = notRun === 0 ? '' : `, ${notRun} not run`;
  return `${name.padEnd(width)}  safe ${safe} of ${run}, exact ${exact} of ${run}${left}`;
}

function named(title: string, results: readonly CaseResult[]): string[] {
  if (results.length === 0) return [];
  return ['', title, ...results.map(({ id, detail }) => `  ${id}: ${detail}`)];
}

/** The report a person reads: a line for each group, one for all, then the cases that are not exact by name. */
export function caseReport(results: readonly CaseResult[]): string {
  const groups = [...new Set(results.map(({ group }) => group))];
  const width = Math.max(6, ...groups.map((name) => name.length));
  const of = (state: CaseResult['state']) => results.filter((result) => result.state === state);
  return [
    ...groups.map((name) => line(name, tallyOf(results.filter(({ group }) => group === name)), width)),
    line('in all', tallyOf(results), width),
    ...named('unsafe', of('unsafe')),
    ...named('safe, not exact', of('safe')),
    ...named('not run', of('not_run')),
  ].join('\n');
}
