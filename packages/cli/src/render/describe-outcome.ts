import type { Outcome } from '@firecrew/protocol';

const TEXT: Readonly<Record<Outcome['kind'], string>> = {
  completed: 'completed',
  gate_capped: 'the check still fails after the last round',
  gate_unrunnable: 'the check could not be run',
  setup_failed: 'the set-up failed',
  failed_to_start: 'it could not start',
  uncollected: 'its files could not be collected',
  timed_out: 'it ran out of time',
  budget_exceeded: 'it used up its budget',
  refused: 'it was refused',
  spool_full: 'there was no room left to record it',
  lost: 'it was lost',
  cancelled: 'cancelled',
};

/** How an attempt ended, for people, with the reason where there is one. */
export function describeOutcome(outcome: Outcome | null): string {
  if (outcome === null) return 'without an outcome';
  const reason = 'reason' in outcome ? ` (${outcome.reason})` : '';
  return `${TEXT[outcome.kind]}${reason}`;
}
