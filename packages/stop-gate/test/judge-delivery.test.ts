import { describe, expect, it } from 'vitest';
import { judgeDelivery } from '../src/index.ts';

const needed = { requireChange: true };

describe('the delivery of a phase', () => {
  it.each([
    { gate: needed, hasCommit: true, leftOut: ['ignored'], verdict: { ok: true } },
    { gate: needed, hasCommit: false, leftOut: [], verdict: { ok: false, reason: 'no_change' } },
    { gate: needed, hasCommit: false, leftOut: ['ignored', 'ignored'], verdict: { ok: false, reason: 'ignored_only' } },
    { gate: needed, hasCommit: false, leftOut: ['ignored', 'is_submodule'], verdict: { ok: false, reason: 'no_change' } },
    { gate: { requireChange: false, check: 'make' }, hasCommit: false, leftOut: ['ignored'], verdict: { ok: true } },
    { gate: undefined, hasCommit: false, leftOut: [], verdict: { ok: true } },
  ])('is judged $verdict by the gate $gate with a commit $hasCommit and left out $leftOut', ({ gate, hasCommit, leftOut, verdict }) => {
    expect(judgeDelivery(gate, { hasCommit, leftOut })).toMatchObject(verdict);
  });
});
