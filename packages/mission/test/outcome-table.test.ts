import { describe, expect, it } from 'vitest';
import { describeOutcome, type Outcome, ruleOf } from '../src/index.ts';

describe('the outcome table', () => {
  it.each<[Outcome, boolean, string, number]>([
    [{ kind: 'completed' }, false, 'completed', 0],
    [{ kind: 'gate_capped' }, false, 'failed', 1],
    [{ kind: 'gate_unrunnable' }, false, 'failed', 1],
    [{ kind: 'setup_failed' }, false, 'failed', 1],
    [{ kind: 'failed_to_start', reason: 'boot_failed' }, true, 'failed', 1],
    [{ kind: 'failed_to_start', reason: 'workspace_unavailable' }, false, 'failed', 1],
    [{ kind: 'failed_to_start', reason: 'inject_failed' }, false, 'failed', 1],
    [{ kind: 'failed_to_start', reason: 'spec_refused' }, false, 'failed', 1],
    [{ kind: 'failed_to_start', reason: 'no_capable_node' }, false, 'failed', 4],
    [{ kind: 'failed_to_start', reason: 'never_fits' }, false, 'failed', 4],
    [{ kind: 'failed_to_start', reason: 'unisolated_not_allowed' }, false, 'failed', 4],
    [{ kind: 'uncollected' }, false, 'failed', 1],
    [{ kind: 'timed_out' }, false, 'failed', 1],
    [{ kind: 'budget_exceeded' }, false, 'failed', 1],
    [{ kind: 'refused', reason: 'environment' }, false, 'failed', 1],
    [{ kind: 'spool_full' }, false, 'failed', 1],
    [{ kind: 'lost', reason: 'node_lost' }, true, 'failed', 1],
    [{ kind: 'lost', reason: 'shim_died' }, true, 'failed', 1],
    [{ kind: 'lost', reason: 'lease_lost' }, true, 'failed', 1],
    [{ kind: 'lost', reason: 'guest_lost' }, true, 'failed', 1],
    [{ kind: 'cancelled' }, false, 'failed', 3],
  ])('%j: try again %s, phase %s, exit %i', (outcome, tryAgain, phase, exitCode) => {
    expect(ruleOf(outcome)).toEqual({ tryAgain, phase, exitCode });
  });

  it('names an outcome with its reason', () => {
    expect(describeOutcome({ kind: 'lost', reason: 'node_lost' })).toBe('lost (node_lost)');
    expect(describeOutcome({ kind: 'timed_out' })).toBe('timed_out');
  });
});
