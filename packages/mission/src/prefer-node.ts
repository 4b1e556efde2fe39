import type { Attempt } from './aggregate.ts';
import type { Outcome } from './outcome-table.ts';

/**
 * The node where the next turn of a mission had best go: that of its latest attempt, unless the fault may have been the host's. A
 * preference and never a requirement: a turn can run anywhere.
 */
export function preferNode(latest: Pick<Attempt, 'nodeId' | 'outcome'> | undefined): string | undefined {
  if (latest === undefined) return undefined;
  return latest.outcome !== null && isOfHost(latest.outcome) ? undefined : latest.nodeId;
}

/** True where the same work may end otherwise on another host. */
function isOfHost(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case 'lost':
    case 'failed_to_start':
    case 'uncollected':
    case 'spool_full':
      return true;
    case 'refused':
      return outcome.reason === 'egress_down';
    case 'completed':
    case 'gate_capped':
    case 'gate_unrunnable':
    case 'setup_failed':
    case 'timed_out':
    case 'budget_exceeded':
    case 'cancelled':
      return false;
  }
}
