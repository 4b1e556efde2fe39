import { describe, expect, it } from 'vitest';
import { type Outcome, preferNode } from '../src/index.ts';

describe('the node that a mission prefers', () => {
  it.each<[Outcome | null, string | undefined]>([
    [null, 'nod_a'],
    [{ kind: 'completed' }, 'nod_a'],
    [{ kind: 'gate_capped' }, 'nod_a'],
    [{ kind: 'gate_unrunnable' }, 'nod_a'],
    [{ kind: 'setup_failed' }, 'nod_a'],
    [{ kind: 'timed_out' }, 'nod_a'],
    [{ kind: 'budget_exceeded' }, 'nod_a'],
    [{ kind: 'cancelled' }, 'nod_a'],
    [{ kind: 'refused', reason: 'agent_files' }, 'nod_a'],
    [{ kind: 'refused', reason: 'egress_down' }, undefined],
    [{ kind: 'failed_to_start', reason: 'boot_failed' }, undefined],
    [{ kind: 'failed_to_start', reason: 'inject_failed' }, undefined],
    [{ kind: 'uncollected' }, undefined],
    [{ kind: 'spool_full' }, undefined],
    [{ kind: 'lost', reason: 'node_lost' }, undefined],
    [{ kind: 'lost', reason: 'guest_lost' }, undefined],
  ])('after an attempt that ended as %j is %s', (outcome, expected) => {
    expect(preferNode({ nodeId: 'nod_a', outcome })).toBe(expected);
  });

  it('is none before the first attempt', () => {
    expect(preferNode(undefined)).toBeUndefined();
  });
});
