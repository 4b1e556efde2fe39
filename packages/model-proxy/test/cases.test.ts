import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type RouteCase, runRouteCase } from './cases/run-route-case.ts';

const all: readonly RouteCase[] = JSON.parse(readFileSync(new URL('../../../tests/cases/egress/cases.json', import.meta.url), 'utf8'));
const cases = all.filter((entry) => entry.target === 'model-route');

describe('the published cases of a model route', () => {
  it('are as many as when this was written', () => {
    expect(cases).toHaveLength(17);
  });

  it.each(cases)('$id: $input ends as $expect', async (entry) => {
    const end = await runRouteCase(entry);
    expect(end).toMatchObject({ run: true });
    if (end.run) expect([entry.expect, ...(entry.acceptable ?? [])]).toContain(end.ended);
  });

  it.each([{ checks: ['a-new-check:1'] }, { aNewField: 1 }, { input: 'words of nobody' }])(
    'are not run where they ask for %o',
    async (field) => {
      const plain: RouteCase = {
        id: 'x',
        group: 'x',
        kind: 'client',
        input: 'two pipelined requests on one connection',
        expect: 'route-ok',
        allowList: [],
      };
      expect(await runRouteCase(plain)).toEqual({ run: true, ended: 'route-ok' });
      expect(await runRouteCase({ ...plain, ...field })).toMatchObject({ run: false });
    },
  );
});
