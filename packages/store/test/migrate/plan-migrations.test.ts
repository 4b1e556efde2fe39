import { expect, it } from 'vitest';
import { planMigrations } from '../../src/migrate/plan-migrations.ts';

const m = (when: number, hash = `h${when}`): { when: number; hash: string } => ({ when, hash });

it.each([
  ['an empty database gets all', [m(1), m(2)], [], { verdict: 'apply', pending: 2 }],
  ['one that is up to date gets none', [m(1), m(2)], [m(1), m(2)], { verdict: 'apply', pending: 0 }],
  ['the order of its rows does not matter', [m(1), m(2), m(3)], [m(2), m(1)], { verdict: 'apply', pending: 1 }],
  ['a newer one is refused', [m(1)], [m(1), m(2)], { verdict: 'refuse', reason: 'database_newer', when: 2 }],
  ['one of another line of versions is refused', [m(1), m(3)], [m(1), m(2)], { verdict: 'refuse', reason: 'database_newer', when: 2 }],
  ['a changed migration is refused', [m(1), m(2)], [m(1, 'other')], { verdict: 'refuse', reason: 'migration_changed', when: 1 }],
  [
    'one that would be left out is refused',
    [m(1), m(2), m(3)],
    [m(1), m(3)],
    { verdict: 'refuse', reason: 'migration_out_of_order', when: 2 },
  ],
  ['no migrations and no rows are nothing to do', [], [], { verdict: 'apply', pending: 0 }],
])('%s', (_name, known, applied, plan) => {
  expect(planMigrations(known, applied)).toEqual(plan);
});
