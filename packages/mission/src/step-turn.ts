/*
 * Turn and its attempts (the server's view)
 *
 *   waiting ──reserved──> running: attempt n ──accepted──> attempt n ──ended──┬── ended
 *      ^                                                                      │ host's fault, tries < MAX_TURN_ATTEMPTS
 *      └──────────────────────────────────────────────────────────────────────┘ (attempt n + 1 at the next reservation)
 *
 * The attempt number changes here and nowhere else.
 */
import type { Attempt, TreeRef, Turn, WantedTurn } from './aggregate.ts';
import { MAX_TURN_ATTEMPTS, type Outcome, ruleOf } from './outcome-table.ts';

/** A turn that waits for its first slot. */
export function newTurn(id: string, phaseId: string, runId: string, wanted: WantedTurn): Turn {
  return { id, phaseId, runId, step: wanted.step, graphNode: wanted.graphNode, state: 'waiting', attempt: 0, tries: 0, attempts: [] };
}

/** The turn with a new attempt on `nodeId`. */
export function reserveAttempt(turn: Turn, epoch: number, nodeId: string): Turn {
  const attempt: Attempt = {
    attempt: turn.attempt + 1,
    epoch,
    nodeId,
    state: 'reserved',
    outcome: null,
    detail: '',
    tree: null,
    verified: false,
  };
  return { ...turn, state: 'running', attempt: attempt.attempt, tries: turn.tries + 1, attempts: [...turn.attempts, attempt] };
}

/** The turn after its newest attempt ended; it waits again where the outcome allows and a try is left. */
export function applyAttemptEnd(
  turn: Turn,
  end: {
    readonly attempt: number;
    readonly outcome: Outcome;
    readonly detail: string;
    readonly tree: TreeRef | null;
    readonly verified: boolean;
  },
  cancelRequested: boolean,
): { readonly turn: Turn; readonly retrying: boolean } {
  const retrying = ruleOf(end.outcome).tryAgain && !cancelRequested && turn.tries < MAX_TURN_ATTEMPTS;
  const attempts = turn.attempts.map((item) =>
    item.attempt === end.attempt
      ? { ...item, state: 'ended' as const, outcome: end.outcome, detail: end.detail, tree: end.tree, verified: end.verified }
      : item,
  );
  return { turn: { ...turn, attempts, state: retrying ? 'waiting' : 'ended' }, retrying };
}

/** A waiting turn ends when its mission is cancelled; a running one ends when its attempt does. */
export function applyCancelToTurn(turn: Turn): Turn {
  return turn.state === 'waiting' ? { ...turn, state: 'ended' } : turn;
}
