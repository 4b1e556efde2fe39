/** How an attempt ended: the closed list of the design, the same as on the wire. */
export type Outcome =
  | { readonly kind: 'completed' }
  | { readonly kind: 'gate_capped' }
  | { readonly kind: 'gate_unrunnable' }
  | { readonly kind: 'setup_failed' }
  | { readonly kind: 'failed_to_start'; readonly reason: FailedToStartReason }
  | { readonly kind: 'uncollected' }
  | { readonly kind: 'timed_out' }
  | { readonly kind: 'budget_exceeded' }
  | { readonly kind: 'refused'; readonly reason: RefusedReason }
  | { readonly kind: 'spool_full' }
  | { readonly kind: 'lost'; readonly reason: LostReason }
  | { readonly kind: 'cancelled' };

export type FailedToStartReason =
  | 'boot_failed'
  | 'workspace_unavailable'
  | 'inject_failed'
  | 'no_capable_node'
  | 'never_fits'
  | 'unisolated_not_allowed'
  | 'spec_refused';
export type LostReason = 'node_lost' | 'shim_died' | 'lease_lost' | 'guest_lost';
export type RefusedReason = 'environment' | 'egress_down' | 'agent_files' | 'protected_paths';

/** Attempts a turn may have in one pass, the first one included. */
export const MAX_TURN_ATTEMPTS = 2;

/** Exit codes of `firecrew run`: what a script can rely on. */
export const EXIT_CODE = { completed: 0, failed: 1, usage: 2, cancelled: 3, notPlaced: 4 } as const;

/** What follows from an outcome. */
export interface OutcomeRule {
  /** Whether another attempt is made while fewer than `MAX_TURN_ATTEMPTS` were. */
  readonly tryAgain: boolean;
  readonly phase: 'completed' | 'failed';
  readonly exitCode: 0 | 1 | 3 | 4;
}

const FAILED: OutcomeRule = { tryAgain: false, phase: 'failed', exitCode: 1 };
const AGAIN: OutcomeRule = { tryAgain: true, phase: 'failed', exitCode: 1 };
const NOT_PLACED: OutcomeRule = { tryAgain: false, phase: 'failed', exitCode: 4 };

/**
 * The one table from an outcome to what follows. A new attempt is made where the fault lies with the host and not
 * with the work: a lost node, shim, lease or guest, and a boot that failed.
 */
export function ruleOf(outcome: Outcome): OutcomeRule {
  switch (outcome.kind) {
    case 'completed':
      return { tryAgain: false, phase: 'completed', exitCode: 0 };
    case 'cancelled':
      return { tryAgain: false, phase: 'failed', exitCode: 3 };
    case 'lost':
      return AGAIN;
    case 'failed_to_start':
      if (outcome.reason === 'boot_failed') return AGAIN;
      return outcome.reason === 'no_capable_node' || outcome.reason === 'never_fits' || outcome.reason === 'unisolated_not_allowed'
        ? NOT_PLACED
        : FAILED;
    case 'gate_capped':
    case 'gate_unrunnable':
    case 'setup_failed':
    case 'uncollected':
    case 'timed_out':
    case 'budget_exceeded':
    case 'refused':
    case 'spool_full':
      return FAILED;
  }
}

/** An outcome as one word or two: `lost (node_lost)`. */
export function describeOutcome(outcome: Outcome): string {
  return 'reason' in outcome ? `${outcome.kind} (${outcome.reason})` : outcome.kind;
}
