import { expect, it } from 'vitest';
import { decideExclusion, EXCLUDABLE_NAMES, HARD_EXCLUDED_NAMES } from '../../src/index.ts';

it.each([
  ['src', false, true, { verdict: 'keep', rule: 'name_not_listed' }],
  ['dist', true, true, { verdict: 'keep', rule: 'holds_tracked' }],
  ['node_modules', true, true, { verdict: 'keep', rule: 'holds_tracked' }],
  ['dist', false, false, { verdict: 'keep', rule: 'not_ignored' }],
  ['dist', false, true, { verdict: 'leave_out', rule: 'ignored', warn: false }],
  ['node_modules', false, true, { verdict: 'leave_out', rule: 'ignored', warn: false }],
  ['node_modules', false, false, { verdict: 'leave_out', rule: 'hard_list', warn: true }],
  ['Node_Modules', false, true, { verdict: 'keep', rule: 'name_not_listed' }],
])('a folder %s, tracked %s, ignored %s', (name, holdsTracked, isIgnored, verdict) => {
  expect(decideExclusion({ name: new TextEncoder().encode(name), holdsTracked, isIgnored })).toEqual(verdict);
});

it('has one pinned list, and a hard list within it', () => {
  expect(EXCLUDABLE_NAMES).toEqual(['node_modules', 'target', '.venv', 'venv', '__pycache__', '.cache', 'dist', 'build']);
  expect(HARD_EXCLUDED_NAMES).toEqual(['node_modules', '.venv', 'venv', '__pycache__', '.cache']);
});
