import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { decideCase, type EgressCase, isDecision } from './cases/decide-case.ts';

const cases: readonly EgressCase[] = JSON.parse(readFileSync(new URL('../../../tests/cases/egress/cases.json', import.meta.url), 'utf8'));
const REFUSALS = new Set(['deny', 'malformed', 'config-error', 'timeout']);
const runnable = cases.filter(isDecision);
const tally = { safe: 0, exact: 0 };

describe('the published egress cases that are decisions', () => {
  it.each(runnable)('$group $id: $input ends as $expect', (entry) => {
    const { outcome } = decideCase(entry);
    if (outcome === entry.expect) tally.exact += 1;
    if (entry.expect === 'allow' || REFUSALS.has(outcome) || entry.acceptable?.includes(outcome) === true) tally.safe += 1;
    expect([entry.expect, ...(entry.acceptable ?? [])]).toContain(outcome);
  });

  it('judges at least the number of cases it judged when this was written', () => {
    expect(runnable.length).toBeGreaterThanOrEqual(215);
  });

  afterAll(() => {
    console.log(
      `egress cases as decisions: ${runnable.length} run, safe ${tally.safe}, exact ${tally.exact}, not run ${cases.length - runnable.length}`,
    );
  });
});
