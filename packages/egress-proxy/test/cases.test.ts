import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { EgressCase } from './cases/case-format.ts';
import { runEgressCase } from './cases/run-egress-case.ts';

const all: readonly EgressCase[] = JSON.parse(readFileSync(new URL('../../../tests/cases/egress/cases.json', import.meta.url), 'utf8'));
const tally = { run: 0, exact: 0 };
const notRun: string[] = [];

describe('the published egress cases on the wire', () => {
  it.each(all)(
    '$group $id: $input ends as $expect, or is not run',
    async (entry) => {
      const end = await runEgressCase(entry);
      if (!end.run) {
        notRun.push(entry.id);
        return;
      }
      tally.run += 1;
      if (end.ended === entry.expect) tally.exact += 1;
      expect([entry.expect, ...(entry.acceptable ?? [])]).toContain(end.ended);
    },
    120_000,
  );

  it('ran at least the cases that were run when this was written', () => {
    expect(tally.run).toBeGreaterThanOrEqual(255);
  });

  it.each([
    { field: { kind: 'a-new-kind' } },
    { field: { target: 'model-route' } },
    { field: { requires: ['a-new-feature'] } },
    { field: { checks: ['a-new-check:1'] } },
    { field: { aNewField: 1 } },
  ])('does not run a case that asks for $field', async ({ field }) => {
    const plain: EgressCase = { id: 'x', group: 'x', kind: 'hostname', input: 'evil.test', expect: 'deny', allowList: [] };
    expect(await runEgressCase(plain)).toEqual({ run: true, ended: 'deny' });
    expect(await runEgressCase({ ...plain, ...field })).toMatchObject({ run: false });
  });

  afterAll(() => {
    console.log(`egress cases on the wire: ${tally.run} run, exact ${tally.exact}, not run ${notRun.length}: ${notRun.join(' ')}`);
  });
});
