import { describe, expect, it } from 'vitest';
import { gradeVerification } from '../src/index.ts';

describe('how far a passed gate can be relied on', () => {
  it.each([
    { mode: 'fresh-vm', check: 'passed', delivered: 'a', level: 'verified', reason: 'fresh_environment' },
    { mode: 'same-vm', check: 'passed', delivered: 'a', level: 'reported', reason: 'same_vm' },
    { mode: 'fresh-vm', check: 'passed', delivered: 'b', level: 'none', reason: 'snapshot_mismatch' },
    { mode: 'fresh-vm', check: 'not_passed', delivered: 'a', level: 'none', reason: 'check_not_passed' },
    { mode: 'fresh-vm', check: 'none', delivered: 'a', level: 'none', reason: 'no_check' },
  ] as const)('is $level by $reason', ({ mode, check, delivered, level, reason }) => {
    expect(gradeVerification({ mode, check, checkedSnapshot: 'a', deliveredSnapshot: delivered })).toEqual({ level, reason });
  });
});
