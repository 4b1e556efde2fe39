import { describe, expect, it } from 'vitest';
import { MAX_CHECK_BYTES, type PhaseKind, planGate, planTurnGate } from '../src/index.ts';

const kinds: readonly PhaseKind[] = ['research', 'coding', 'benchmark', 'security_scan', 'preview'];

describe('the gate of a phase', () => {
  it.each(
    kinds.flatMap((kind) =>
      [true, false, null, undefined].flatMap((allowEmpty) =>
        ['npm test', '  npm test\n', ' \t\n', '', null, undefined].map((doneWhenCheck) => ({ kind, allowEmpty, doneWhenCheck })),
      ),
    ),
  )('holds exactly what $kind, allowEmpty $allowEmpty and check $doneWhenCheck enforce', (phase) => {
    const check = phase.doneWhenCheck?.trim() === 'npm test' ? { check: 'npm test' } : {};
    const requireChange = phase.kind === 'coding' && phase.allowEmpty !== true;
    const expected = requireChange || 'check' in check ? { requireChange, ...check } : undefined;
    expect(planGate(phase)).toEqual(expected);
  });

  it('refuses a check with a NUL and one byte above the limit, and takes one at the limit', () => {
    expect(() => planGate({ kind: 'coding', doneWhenCheck: 'a\0b' })).toThrow(expect.objectContaining({ code: 'gate_invalid' }));
    const longest = 'é'.repeat(MAX_CHECK_BYTES / 2);
    expect(planGate({ kind: 'research', doneWhenCheck: longest })).toEqual({ requireChange: false, check: longest });
    expect(() => planGate({ kind: 'research', doneWhenCheck: `${longest}x` })).toThrow(expect.objectContaining({ code: 'gate_invalid' }));
  });

  it('keeps the check and drops the change requirement for a turn of a composed run', () => {
    expect(planTurnGate({ requireChange: true, check: 'make' })).toEqual({ requireChange: false, check: 'make' });
    expect(planTurnGate({ requireChange: true })).toBeUndefined();
    expect(planTurnGate(undefined)).toBeUndefined();
  });
});
